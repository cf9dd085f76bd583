use std::io;
use std::sync::{Arc, Mutex};

use crate::test_support::{Cluster, EPOCH, payload};
use crate::{BroadcastError, Epoch, Round};

#[test]
fn a_round_is_logged_before_anything_can_leave() {
    let mut cluster = Cluster::new(&[1; 3]);
    let (now, engine) = (cluster.now, &mut cluster.engines[0]);
    let logged: Arc<Mutex<Vec<(Epoch, Round)>>> = Arc::default();
    let log = Arc::clone(&logged);
    engine.set_round_log(move |epoch, round| {
        log.lock().unwrap().push((epoch, round));
        Ok(())
    });
    for round in [3, 4] {
        engine
            .broadcast(now, EPOCH, Round::from(round), payload(10, 1))
            .unwrap();
        assert_eq!(logged.lock().unwrap().last(), Some(&(EPOCH, Round::from(round))));
    }
    let again = engine.broadcast(now, EPOCH, Round::from(4), payload(10, 2));
    assert_eq!(again, Err(BroadcastError::DuplicateRound(EPOCH, Round::from(4))));
    assert_eq!(
        logged.lock().unwrap().len(),
        2,
        "a refused broadcast uses no round"
    );
}

#[test]
fn without_a_durable_round_nothing_leaves() {
    let mut cluster = Cluster::new(&[1; 3]);
    let (now, engine) = (cluster.now, &mut cluster.engines[0]);
    engine.set_round_log(|_, _| Err(io::ErrorKind::StorageFull.into()));
    let outcome = engine.broadcast(now, EPOCH, Round::from(1), payload(10, 1));
    assert_eq!(
        outcome,
        Err(BroadcastError::NotDurable(io::ErrorKind::StorageFull))
    );
    assert_eq!(engine.poll_transmit(), None);
    engine.set_round_log(|_, _| Ok(()));
    engine
        .broadcast(now, EPOCH, Round::from(1), payload(10, 2))
        .unwrap();
}

#[test]
fn a_node_that_restarts_refuses_the_rounds_it_logged() {
    let mut cluster = Cluster::new(&[1; 3]);
    let (now, engine) = (cluster.now, &mut cluster.engines[0]);
    engine.resume_after(EPOCH, Round::from(8));
    let same = engine.broadcast(now, EPOCH, Round::from(8), payload(10, 1));
    assert_eq!(same, Err(BroadcastError::DuplicateRound(EPOCH, Round::from(8))));
    let earlier = engine.broadcast(now, EPOCH, Round::from(7), payload(10, 1));
    assert_eq!(
        earlier,
        Err(BroadcastError::OldRound(Round::from(7), Round::from(8)))
    );
    engine
        .broadcast(now, EPOCH, Round::from(9), payload(10, 1))
        .unwrap();
}
