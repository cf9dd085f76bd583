//! Readiness of lanes that have no sessions: a node is ready for another once it has heard from it.
//!
//! A node takes in a new peer on its own thread, a little later than it is told. A session proves that both
//! sides have; on the plain lane only a datagram can. So each node greets each other one until it was heard.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use falconet::{Class, IdentityKey, Messages, Node};
use tokio::time::{sleep, timeout};

/// How often arrivals are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Greetings are repeated after this time and the longest way there, since links may lose them.
const REPEAT: Duration = Duration::from_millis(100);

/// The nodes that one has not heard from.
pub(crate) type Unheard = Vec<IdentityKey>;

/// Lets each node greet each other one until all were heard, at most until `limit`; gives, for each node,
/// those it has not heard from. `longest_delay` is that of the links, one way.
pub(crate) async fn greet(nodes: &[Node], longest_delay: Duration, limit: Instant) -> Vec<Unheard> {
    let mut inboxes: Vec<_> = nodes.iter().map(Node::messages).collect();
    let identities: HashSet<_> = nodes.iter().map(Node::identity).collect();
    let mut unheard: Vec<HashSet<_>> = nodes
        .iter()
        .map(|node| {
            identities
                .iter()
                .copied()
                .filter(|identity| *identity != node.identity())
                .collect()
        })
        .collect();
    let mut repeat_at = Instant::now();
    while unheard.iter().any(|missing| !missing.is_empty()) && Instant::now() < limit {
        if Instant::now() >= repeat_at {
            send_greetings(nodes, &unheard);
            repeat_at = Instant::now() + REPEAT + longest_delay;
        }
        sleep(LOOK).await;
        for (inbox, missing) in inboxes.iter_mut().zip(&mut unheard) {
            take_greetings(inbox, missing).await;
        }
    }
    unheard
        .into_iter()
        .map(|missing| missing.into_iter().collect())
        .collect()
}

fn send_greetings(nodes: &[Node], unheard: &[HashSet<IdentityKey>]) {
    for sender in nodes {
        for (receiver, missing) in nodes.iter().zip(unheard) {
            if missing.contains(&sender.identity()) {
                let greeting = Bytes::from_static(b"hello");
                // A queue without room is like a link that loses: the greeting is repeated.
                drop(sender.try_send(&receiver.identity(), greeting, Class::Control));
            }
        }
    }
}

async fn take_greetings(inbox: &mut Messages, missing: &mut HashSet<IdentityKey>) {
    while let Ok(Some(message)) = timeout(Duration::ZERO, inbox.recv()).await {
        if let Some(from) = message.from {
            missing.remove(&from);
        }
    }
}
