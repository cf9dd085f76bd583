//! Who is not listened to for a time.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use falconet_transport::{PeerId, Sessions};

use crate::kernel_bans::KernelBans;

/// Most addresses, and most peers, that are banned at a time; one more takes the place of the one that would have
/// ended first.
const MOST: usize = 1_024;
/// Most addresses that the kernel's filters drop; each costs two instructions a datagram.
pub(crate) const MOST_IN_KERNEL: usize = 64;

/// Who is meant by a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ban {
    /// Everything from this address, whatever its port, but for the datagrams of trusted peers.
    Address(IpAddr),
    /// A peer, from wherever its datagrams come.
    Peer(PeerId),
}

/// The bans in force (docs/spec/threads.md#bans).
#[derive(Default)]
pub(crate) struct Bans {
    addresses: HashMap<IpAddr, Instant>,
    peers: HashMap<PeerId, Instant>,
    trusted: HashSet<PeerId>,
    kernel: KernelBans,
    /// Whether the kernel's list is to be made anew.
    is_stale: bool,
}

impl Bans {
    /// None yet; those of addresses will be put into `kernel` as well.
    pub(crate) fn new(kernel: KernelBans) -> Bans {
        Bans {
            kernel,
            ..Bans::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.peers.is_empty()
    }

    /// Bans until `now` and `time` later; a time of zero lifts a ban.
    pub(crate) fn ban(&mut self, now: Instant, ban: Ban, time: Duration) {
        // As good as for ever, where the sum is past what the clock can say.
        let until = now
            .checked_add(time)
            .unwrap_or(now + Duration::from_secs(1 << 30));
        match ban {
            Ban::Address(address) => {
                insert(&mut self.addresses, address.to_canonical(), now, until);
                self.is_stale = true;
            }
            Ban::Peer(peer) => insert(&mut self.peers, peer, now, until),
        }
    }

    /// Exempts `peer` from every ban, or no longer.
    pub(crate) fn trust(&mut self, peer: PeerId, is_trusted: bool) {
        if is_trusted {
            self.trusted.insert(peer);
        } else {
            self.trusted.remove(&peer);
        }
        self.is_stale = true;
    }

    pub(crate) fn remove_peer(&mut self, peer: PeerId) {
        self.peers.remove(&peer);
        self.is_stale |= self.trusted.remove(&peer);
    }

    /// Lifts the bans that have ended, and tells the kernel of what has changed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, sessions: &Sessions) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.peers.retain(|_, until| *until > now);
            let before = self.addresses.len();
            self.addresses.retain(|_, until| *until > now);
            self.is_stale |= self.addresses.len() != before;
        }
        if std::mem::take(&mut self.is_stale) {
            self.kernel.apply(&self.in_kernel(sessions));
        }
    }

    /// When the next ban ends.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let ends = self.addresses.values().chain(self.peers.values());
        ends.min().copied()
    }

    /// Whether nothing from `address` is looked at at all.
    pub(crate) fn bars(&self, address: IpAddr) -> bool {
        // Who it is from is known only once it is opened, so with trusted peers everything is.
        self.trusted.is_empty() && self.addresses.contains_key(&address)
    }

    /// Whether what `peer` has sent from `address` is dropped.
    pub(crate) fn refuses(&self, peer: Option<PeerId>, address: IpAddr) -> bool {
        !peer.is_some_and(|peer| self.trusted.contains(&peer))
            && (self.addresses.contains_key(&address)
                || peer.is_some_and(|peer| self.peers.contains_key(&peer)))
    }

    /// The addresses that the kernel may drop without a look: of IPv4, and no trusted peer's.
    fn in_kernel(&self, sessions: &Sessions) -> Vec<Ipv4Addr> {
        let trusted = self.trusted.iter().filter_map(|peer| sessions.address(*peer));
        let kept: HashSet<IpAddr> = trusted.map(|address| address.ip().to_canonical()).collect();
        let banned = self.addresses.keys().filter(|address| !kept.contains(address));
        let v4 = banned.filter_map(|address| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        });
        v4.take(MOST_IN_KERNEL).collect()
    }
}

fn insert<K: Copy + Eq + Hash>(bans: &mut HashMap<K, Instant>, key: K, now: Instant, until: Instant) {
    bans.remove(&key);
    if until <= now {
        return;
    }
    if bans.len() >= MOST
        && let Some(first) = bans.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key)
    {
        bans.remove(&first);
    }
    bans.insert(key, until);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId(7);
    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + last).into()
    }

    fn sessions() -> Sessions {
        let key = falconet_crypto::TransportSecret::from_bytes([1; 32]);
        let now = crate::clock::read_clock();
        falconet_transport::split(falconet_transport::TransportConfig::default(), key, now, [1; 32]).1
    }

    #[test]
    fn a_ban_holds_for_its_time_and_can_be_lifted() {
        let (mut bans, now, sessions) = (Bans::default(), Instant::now(), sessions());
        bans.ban(now, Ban::Address(address(1)), SECOND);
        bans.ban(now, Ban::Peer(PEER), 3 * SECOND);
        bans.ban(now, Ban::Address(address(2)), SECOND);
        bans.ban(now, Ban::Address(address(2)), Duration::ZERO);
        assert!(bans.bars(address(1)) && !bans.bars(address(2)));
        assert!(bans.refuses(Some(PEER), address(2)) && !bans.refuses(None, address(2)));
        assert_eq!(bans.poll_timeout(), Some(now + SECOND));
        bans.handle_timeout(now + 2 * SECOND, &sessions);
        assert!(!bans.bars(address(1)) && bans.refuses(Some(PEER), address(1)));
        bans.handle_timeout(now + 3 * SECOND, &sessions);
        assert!(bans.is_empty() && bans.poll_timeout().is_none());
    }

    #[test]
    fn trusted_peers_are_exempt_wherever_they_are() {
        let (mut bans, now) = (Bans::default(), Instant::now());
        bans.ban(now, Ban::Address(address(1)), SECOND);
        bans.ban(now, Ban::Peer(PEER), SECOND);
        bans.trust(PEER, true);
        assert!(!bans.refuses(Some(PEER), address(1)));
        assert!(bans.refuses(Some(PeerId(8)), address(1)) && bans.refuses(None, address(1)));
        assert!(!bans.bars(address(1)), "it has to be opened to know whose it is");
        bans.trust(PEER, false);
        assert!(bans.refuses(Some(PEER), address(1)));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_longest_bans() {
        let (mut bans, now) = (Bans::default(), Instant::now());
        for last in 0..2_000 {
            bans.ban(now, Ban::Address(address(last)), SECOND * (last + 1));
            bans.ban(now, Ban::Peer(PeerId(last)), SECOND * (last + 1));
        }
        assert_eq!((bans.addresses.len(), bans.peers.len()), (MOST, MOST));
        assert!(!bans.bars(address(0)) && bans.bars(address(1_999)));
        assert_eq!(bans.in_kernel(&sessions()).len(), MOST_IN_KERNEL);
    }
}
