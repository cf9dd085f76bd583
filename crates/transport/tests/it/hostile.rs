//! Junk, forgeries, floods.

use crate::network::{Flight, Network, address, message, ms, plain_address};
use falconet_transport::{Discard, Lane, Policy};
use rand_core::Rng;

/// Stages: nothing yet, dialling, session.
fn stages() -> [Network; 3] {
    let new = || Network::new(2, |_, _, peer| peer.with_policy(Policy::Require));
    let (fresh, mut dialling, mut connected) = (new(), new(), new());
    dialling.send(1, 0, &message(1)).unwrap();
    dialling.intercept();
    connected.send(0, 1, &message(1)).unwrap();
    connected.run_for(ms(100));
    [fresh, dialling, connected]
}

#[test]
fn junk_of_every_length_is_a_counted_discard() {
    for mut network in stages() {
        let before = network.nodes[1].received.len();
        let mut junk = 0;
        for len in 0..=2048 {
            let mut random = vec![0; len];
            network.rng.fill_bytes(&mut random);
            // Types 1 to 4 in front, so that the deeper parsers see it as well.
            let typed = (1..=4).map(|kind| {
                let mut datagram = random.clone();
                datagram.iter_mut().take(4).for_each(|byte| *byte = 0);
                datagram.iter_mut().take(1).for_each(|byte| *byte = kind);
                datagram
            });
            let all: Vec<_> = typed
                .chain([vec![0; len], vec![0xff; len], random.clone()])
                .collect();
            for datagram in all {
                let lane = Lane::Authenticated;
                network.deliver(Flight {
                    to: address(1),
                    from: address(0),
                    lane,
                    datagram,
                });
                junk += 1;
            }
        }
        network.settle();
        let node = &network.nodes[1];
        assert_eq!(node.received.len(), before);
        assert_eq!(node.discards.len(), junk);
        assert!(node.discards.iter().all(|reason| !reason.label().is_empty()));
    }
}

#[test]
fn junk_on_the_plain_lane_is_a_discard_unless_it_is_of_a_kind() {
    let mut network = Network::new(2, |_, _, peer| peer);
    for first in 0..=255u8 {
        let (to, from, lane) = (plain_address(1), plain_address(0), Lane::Plain);
        network.deliver(Flight {
            to,
            from,
            lane,
            datagram: vec![first, 1, 2],
        });
    }
    assert_eq!(network.nodes[1].received.len(), 17);
    assert_eq!(network.nodes[1].discards, [Discard::UnknownKind; 239]);
}

#[test]
fn every_flipped_bit_of_valid_datagrams_is_a_discard_and_spoils_nothing() {
    let mut network = Network::new(2, |_, _, peer| peer.with_policy(Policy::Require));
    network.send(0, 1, &message(1)).unwrap();
    let mut number = 1;
    // Initiation, response, data: every forgery first, then the genuine one.
    for _ in 0..3 {
        for flight in network.intercept() {
            for bit in 0..flight.datagram.len() * 8 {
                let mut datagram = flight.datagram.clone();
                datagram[bit / 8] ^= 1 << (bit % 8);
                let (to, from, lane) = (flight.to, flight.from, flight.lane);
                network.deliver(Flight {
                    to,
                    from,
                    lane,
                    datagram,
                });
            }
            for len in 0..flight.datagram.len() {
                let datagram = flight.datagram[..len].to_vec();
                let (to, from, lane) = (flight.to, flight.from, flight.lane);
                network.deliver(Flight {
                    to,
                    from,
                    lane,
                    datagram,
                });
            }
            network.settle();
            network.deliver(flight);
            number += 1;
        }
        network.collect();
    }
    assert_eq!(number, 4);
    assert_eq!(network.nodes[1].received.len(), 1);
}
