use super::*;
use crate::socket::{PortOptions, bind};

fn port(lane: Lane) -> Port {
    let socket = bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    let options = PortOptions {
        segmentation: true,
        aggregation: true,
        mtu: 1500,
    };
    Port::new(lane, socket, options).unwrap()
}

fn unit(lane: Lane, to: SocketAddr) -> Unit {
    Unit::new(lane, to, 100, vec![7; 100])
}

/// Runs `test` with an egress of both lanes, writable, and a socket to send to.
fn with_egress(test: impl FnOnce(&mut Egress, &std::net::UdpSocket)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut egress = Egress::new(Some(port(Lane::Authenticated)), Some(port(Lane::Plain)), None);
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        test(&mut egress, &receiver);
    });
}

#[test]
fn a_blocked_lane_leaves_the_other_alone_and_keeps_its_order() {
    with_egress(|egress, receiver| {
        let (now, mut counters) = (Instant::now(), Counters::default());
        let to = receiver.local_addr().unwrap();
        egress.lanes[0].outbox.push_back(unit(Lane::Authenticated, to));
        egress.lanes[0].blocked = Some(Blocked::UntilWritable);
        egress.push(now, unit(Lane::Authenticated, to), &mut counters);
        assert_eq!(egress.lanes[0].outbox.len(), 2);
        assert!(receiver.recv(&mut [0; 200]).is_err());
        egress.push(now, unit(Lane::Plain, to), &mut counters);
        assert_eq!(receiver.recv(&mut [0; 200]).unwrap(), 100);
        assert!(egress.is_any_blocked() && !egress.is_held());
        egress.lanes[1].blocked = Some(Blocked::ForAWhile);
        assert!(egress.is_held());
        egress.handle_timeout(now, &mut counters);
        assert!(!egress.is_any_blocked() && egress.lanes[0].outbox.is_empty());
    });
}

#[test]
fn an_outbox_is_bounded_and_scheduling_stops_before_it_is_full() {
    with_egress(|egress, receiver| {
        let (now, mut counters) = (Instant::now(), Counters::default());
        let to = receiver.local_addr().unwrap();
        egress.lanes[0].outbox.push_back(unit(Lane::Authenticated, to));
        egress.lanes[0].blocked = Some(Blocked::UntilWritable);
        let mut refused = 0;
        for pushed in 2..=OUTBOX + 3 {
            refused += egress.push(now, unit(Lane::Authenticated, to), &mut counters);
            assert_eq!(egress.is_held(), pushed >= HELD);
        }
        assert_eq!((egress.lanes[0].outbox.len(), refused), (OUTBOX, 3));
    });
}
