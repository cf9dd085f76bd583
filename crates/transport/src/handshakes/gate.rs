//! What stands before the first Diffie-Hellman; `docs/spec/session.md#admission`.
//!
//! Answers to our own dials never come here: they are told apart by their receiver index.

use falconet_crypto::Now;
use falconet_handshake::{Admission, COOKIE_REPLY_LEN, CheckedOptions, CookieJar, Decision, Evidence};
use falconet_handshake::{Initiation, LocalStatic, Mac1Checked};
use rand_core::CryptoRng;
use std::collections::HashMap;
use std::net::SocketAddr;

/// `falconet_handshake`'s admission with what it has to be told: whose cookie a mac2 was made with,
/// and which addresses stand in a validator's record.
pub(super) struct Gate {
    admission: Admission,
    cookies: CookieJar,
    /// Addresses of known validators, with how many claim each: as many as peers at most.
    recorded: HashMap<SocketAddr, u32>,
    under_load: bool,
}

impl Gate {
    pub(super) fn new(now: Now, options: &CheckedOptions, rng: &mut impl CryptoRng) -> Self {
        Self {
            admission: options.build(now, rng),
            cookies: CookieJar::new(now, rng),
            recorded: HashMap::new(),
            under_load: false,
        }
    }

    /// Decides on an initiation, and counts it against its class; uses no key and allocates nothing.
    pub(super) fn admit(
        &mut self,
        now: Now,
        from: SocketAddr,
        initiation: &Mac1Checked<Initiation>,
        rng: &mut impl CryptoRng,
    ) -> Decision {
        self.cookies.rotate(now, rng);
        let evidence = Evidence {
            mac2_valid: self.cookies.mac2_valid(initiation, from),
            recorded: self.is_recorded(from),
            under_load: self.under_load,
        };
        self.admission.admit(now, from, evidence, rng)
    }

    pub(super) fn cookie_reply(
        &self,
        local: &LocalStatic,
        initiation: &Mac1Checked<Initiation>,
        from: SocketAddr,
        rng: &mut impl CryptoRng,
    ) -> [u8; COOKIE_REPLY_LEN] {
        self.cookies.reply(local, initiation, from, rng)
    }

    pub(super) fn set_under_load(&mut self, under_load: bool) {
        self.under_load = under_load;
    }

    /// One more validator is said to be at `address`.
    /// Whether a source is the recorded address of a validator. Anybody can write it.
    pub(super) fn is_recorded(&self, source: SocketAddr) -> bool {
        self.recorded.contains_key(&canonical(source))
    }

    pub(super) fn add_recorded(&mut self, address: SocketAddr) {
        *self.recorded.entry(canonical(address)).or_default() += 1;
    }

    /// One fewer is.
    pub(super) fn remove_recorded(&mut self, address: SocketAddr) {
        let address = canonical(address);
        if let Some(count) = self.recorded.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.recorded.remove(&address);
            }
        }
    }
}

/// IPv4 stays IPv4 on a dual-stack socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
