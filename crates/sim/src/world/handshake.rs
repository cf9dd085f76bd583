//! A turn of a handshake thread.

use super::World;
use crate::thread::Role;
use falconet_transport::Lane;

/// Messages a turn.
const BATCH: usize = 64;

impl World {
    pub(super) fn handshake_turn(&mut self, number: u16) {
        let index = usize::from(number);
        let now = self.read(number, self.now);
        for _ in 0..BATCH {
            let Some((_, flight)) = self.nodes[index].handshake.pop(self.now) else {
                break;
            };
            let is_response = flight.datagram.first() == Some(&2);
            let mut datagram = flight.datagram.to_vec();
            let taken = self.nodes[index].endpoint.handle_datagram(
                now,
                flight.source,
                Lane::Authenticated,
                &mut datagram,
            );
            let mut cost = self.config.costs.receive.of(datagram.len());
            if taken.is_ok() && is_response {
                cost += self.config.costs.dial.of(0);
            }
            // Accepting an initiation is charged with the response that it made.
            let done = self.charge(number, Role::Handshake, cost);
            self.flush_endpoint(number, done);
        }
        if let Some(ready) = self.nodes[index].handshake.next_ready() {
            let free_at = self.cores.free_at(self.nodes[index].handshake.core);
            self.plan(number, Role::Handshake, ready.max(free_at));
        }
    }
}
