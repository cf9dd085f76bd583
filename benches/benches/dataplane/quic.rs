//! QUIC datagrams by quinn, in the best setting that its public interface allows.
//!
//! Chosen in its favour: AES-128-GCM by ring, no connection identifier in the packets, a path MTU that is known, groups by
//! segmentation offload, few acknowledgements, large buffers, and a congestion window that nothing shrinks (Cubic and
//! BBR carry less here). Each side is one tokio thread on its processor, as ours.

use std::any::Any;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::congestion::{Controller, ControllerFactory};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use quinn::rustls::crypto::CryptoProvider;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use quinn::rustls::server::AlwaysResolvesServerRawPublicKeys;
use quinn::rustls::sign::CertifiedKey;
use quinn::rustls::{CipherSuite, DigitallySignedStruct, SignatureScheme};
use quinn::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig,
    ServerConfig, TokioRuntime, TransportConfig, VarInt, rustls,
};

use crate::direct::{Carried, Counted};
use crate::rig::{RECEIVER, SENDER, chunks, pin, thread_time};

/// Bytes of a UDP datagram on a path of 1,500.
const MTU: u16 = 1_472;
const WINDOW: u64 = 4 << 20;
/// Every so many packets are acknowledged.
const ACKNOWLEDGED: u32 = 256;
/// In front of an Ed25519 seed in PKCS #8 (RFC 8410).
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// What the receiving side has counted so far.
#[derive(Default)]
struct Arrived {
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

/// `length` bytes a datagram.
pub(crate) fn quic(length: usize, time: Duration) -> Carried {
    let open = || UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let (client, server) = (open(), open());
    for socket in [&client, &server] {
        let state = quinn_udp::UdpSocketState::new(socket.into()).expect("options");
        // As ours ask for; the system may clamp it.
        let _ = state.set_recv_buffer_size(socket.into(), 16 << 20);
        let _ = state.set_send_buffer_size(socket.into(), 16 << 20);
    }
    let to = server.local_addr().expect("it is bound");
    let (arrived, done) = (Arrived::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            pin(RECEIVER);
            runtime().block_on(receive(server, &arrived, &done));
            thread_time()
        });
        let sending = scope.spawn(|| {
            pin(SENDER);
            runtime().block_on(async {
                let mut endpoint = endpoint(client, None);
                endpoint.set_default_client_config(client_config());
                let connecting = endpoint.connect(to, "bench").expect("a configuration");
                let connection = connecting.await.expect("loopback");
                let datagram: Bytes = chunks(1, length).remove(0);
                let started = Instant::now();
                let mut sent = 0;
                while started.elapsed() < time {
                    for _ in 0..64 {
                        let datagram = datagram.clone();
                        connection.send_datagram_wait(datagram).await.expect("it fits");
                        sent += 1;
                    }
                }
                let (bytes, measured) = (arrived.bytes.load(Ordering::Relaxed), started.elapsed());
                // What is still on its way counts for the loss, not for the goodput.
                tokio::time::sleep(Duration::from_millis(300)).await;
                done.store(true, Ordering::Relaxed);
                connection.close(VarInt::from_u32(0), b"");
                endpoint.wait_idle().await;
                (sent, bytes, measured, thread_time())
            })
        });
        let (sent, bytes, measured, sender) = sending.join().expect("it sends");
        let receiver = receiving.join().expect("it receives");
        let received = arrived.datagrams.load(Ordering::Relaxed);
        let counted = Counted {
            bytes,
            sent,
            received,
            time: measured,
            sender,
            receiver: (receiver, received),
        };
        counted.carried()
    })
}

async fn receive(socket: UdpSocket, arrived: &Arrived, done: &AtomicBool) {
    let endpoint = endpoint(socket, Some(server_config()));
    let connection = endpoint
        .accept()
        .await
        .expect("an endpoint")
        .await
        .expect("a peer");
    while !done.load(Ordering::Relaxed) {
        let Ok(datagram) = connection.read_datagram().await else {
            break;
        };
        arrived.datagrams.fetch_add(1, Ordering::Relaxed);
        arrived.bytes.fetch_add(datagram.len() as u64, Ordering::Relaxed);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

fn endpoint(socket: UdpSocket, server: Option<ServerConfig>) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.cid_generator(|| Box::new(NoIdentifiers));
    config.max_udp_payload_size(MTU).expect("a size");
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("a socket")
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(VarInt::from_u32(ACKNOWLEDGED));
    config
        .initial_mtu(MTU)
        .min_mtu(MTU)
        .mtu_discovery_config(None)
        .datagram_send_buffer_size(1 << 20)
        .datagram_receive_buffer_size(Some(64 << 20))
        .ack_frequency_config(Some(acknowledgements))
        .congestion_controller_factory(Arc::new(Unshrinking));
    Arc::new(config)
}

fn server_config() -> ServerConfig {
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key())));
    let config = QuicServerConfig::try_from(config).expect("suites for QUIC");
    let mut config = ServerConfig::with_crypto(Arc::new(config));
    config.transport_config(transport());
    config
}

fn client_config() -> ClientConfig {
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider())))
        .with_no_client_auth();
    let config = QuicClientConfig::try_from(config).expect("suites for QUIC");
    let mut config = ClientConfig::new(Arc::new(config));
    config.transport_config(transport());
    config
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    let is_fastest = |suite: CipherSuite| suite == CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.retain(|suite| is_fastest(suite.suite()));
    Arc::new(provider)
}

/// A raw public key (RFC 7250), so that no certificate is needed.
fn key() -> Arc<CertifiedKey> {
    let der = [&PKCS8[..], &[7; 32]].concat();
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der));
    let key = provider().key_provider.load_private_key(der).expect("a key");
    let public = key.public_key().expect("it has one").to_vec();
    Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key))
}

/// Trusts whoever answers: the handshake is not measured.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Connections are told apart by their addresses.
struct NoIdentifiers;

impl ConnectionIdGenerator for NoIdentifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&[])
    }

    fn cid_len(&self) -> usize {
        0
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A congestion window that stays as it is.
struct Unshrinking;

impl ControllerFactory for Unshrinking {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Unshrinking)
    }
}

impl Controller for Unshrinking {
    fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, _lost: u64) {}

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Unshrinking)
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
