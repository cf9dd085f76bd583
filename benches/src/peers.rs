//! Other implementations in their best public configuration, ready to seal and open.

use std::sync::Arc;

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::{PublicKey, StaticSecret};
use falconet_crypto::Suite;
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver, RingResolver};

/// Which cryptography snow runs on.
#[derive(Clone, Copy, Debug)]
pub enum Resolver {
    /// RustCrypto.
    Default,
    /// ring, and RustCrypto for what ring lacks.
    Ring,
}

impl Resolver {
    fn boxed(self) -> Box<dyn CryptoResolver + Send> {
        match self {
            Resolver::Default => Box::new(DefaultResolver),
            Resolver::Ring => Box::new(FallbackResolver::new(
                Box::new(RingResolver),
                Box::new(DefaultResolver),
            )),
        }
    }
}

/// Both ends of a snow session in transport mode, with the Noise pattern of `suite`.
pub fn snow_pair(suite: Suite, resolver: Resolver) -> (snow::TransportState, snow::TransportState) {
    let pattern = match suite {
        Suite::ChaCha20Poly1305 => "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s",
        Suite::Aes256Gcm => "Noise_IKpsk2_25519_AESGCM_BLAKE2s",
    };
    let builder = || {
        let params = pattern.parse().expect("a Noise pattern");
        snow::Builder::with_resolver(params, resolver.boxed())
            .psk(2, &[3; 32])
            .expect("psk slot 2")
    };
    let responder_keys = builder().generate_keypair().expect("keys");
    let initiator_keys = builder().generate_keypair().expect("keys");
    let mut initiator = builder()
        .local_private_key(&initiator_keys.private)
        .and_then(|builder| builder.remote_public_key(&responder_keys.public))
        .and_then(snow::Builder::build_initiator)
        .expect("an initiator");
    let mut responder = builder()
        .local_private_key(&responder_keys.private)
        .and_then(snow::Builder::build_responder)
        .expect("a responder");
    let (mut first, mut second, mut payload) = ([0; 256], [0; 256], [0; 256]);
    let length = initiator.write_message(&[], &mut first).expect("message 1");
    responder
        .read_message(&first[..length], &mut payload)
        .expect("message 1 is read");
    let length = responder.write_message(&[], &mut second).expect("message 2");
    initiator
        .read_message(&second[..length], &mut payload)
        .expect("message 2 is read");
    let transport = "the handshake is complete";
    (
        initiator.into_transport_mode().expect(transport),
        responder.into_transport_mode().expect(transport),
    )
}

/// Two boringtun tunnels with a session between them; the first one initiated.
pub fn boringtun_pair() -> (Tunn, Tunn) {
    let (mut initiator, mut responder) = boringtun_tunnels();
    let (mut first, mut second, mut third) = ([0; 256], [0; 256], [0; 256]);
    let TunnResult::WriteToNetwork(initiation) = initiator.format_handshake_initiation(&mut first, false)
    else {
        panic!("boringtun initiates");
    };
    let TunnResult::WriteToNetwork(response) = responder.decapsulate(None, initiation, &mut second) else {
        panic!("boringtun responds");
    };
    let TunnResult::WriteToNetwork(keepalive) = initiator.decapsulate(None, response, &mut third) else {
        panic!("boringtun confirms");
    };
    let mut nothing = [0; 256];
    assert!(matches!(
        responder.decapsulate(None, keepalive, &mut nothing),
        TunnResult::Done
    ));
    (initiator, responder)
}

/// Two boringtun tunnels that know each other's keys, and never answer a handshake with a cookie for its rate.
pub fn boringtun_tunnels() -> (Tunn, Tunn) {
    let (ours, theirs) = (StaticSecret::from([1; 32]), StaticSecret::from([2; 32]));
    let (our_public, their_public) = (PublicKey::from(&ours), PublicKey::from(&theirs));
    let unlimited = |public: &PublicKey| Some(Arc::new(RateLimiter::new(public, u64::MAX)));
    let (our_limiter, their_limiter) = (unlimited(&our_public), unlimited(&their_public));
    (
        Tunn::new(ours, their_public, None, None, 1, our_limiter),
        Tunn::new(theirs, our_public, None, None, 2, their_limiter),
    )
}

/// The smallest thing that boringtun accepts as a packet of `length` bytes.
pub fn ipv4_packet(length: usize) -> Vec<u8> {
    let mut packet = vec![0x20; length];
    packet[0] = 0x45;
    let total = u16::try_from(length).expect("a packet fits its length field");
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet
}
