//! Peer records: what an identity says of its node, signed; `docs/spec/record.md`.

mod codec;

use crate::PeerConfig;
use falconet_crypto::TransportPublicKey;
use falconet_crypto::{
    BadSignature, IdentityKey, NetworkId, Now, Purpose, SignError, Signature, Signer, Suite,
};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

/// Longest encoding: four addresses.
pub const MAX_RECORD_LEN: usize = codec::FIXED_LEN + 2 * (7 + 19) + codec::SIGNATURE_LEN;

/// Addresses of one lane; at most one a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneAddresses {
    /// IPv4.
    pub v4: Option<SocketAddrV4>,
    /// IPv6. Flow label and scope do not travel.
    pub v6: Option<SocketAddrV6>,
}

impl LaneAddresses {
    /// The IPv6 address if that is asked for and there is one, else as [`LaneAddresses::preferred`].
    pub(crate) fn of_family(&self, is_v6: bool) -> Option<SocketAddr> {
        let v6 = self.v6.map(SocketAddr::V6).filter(|_| is_v6);
        v6.or_else(|| self.preferred())
    }

    /// The IPv4 address if there is one, else the IPv6 one.
    #[must_use]
    pub fn preferred(&self) -> Option<SocketAddr> {
        let v6 = self.v6.map(SocketAddr::V6);
        self.v4.map(SocketAddr::V4).or(v6)
    }
}

/// Capability bits; unknown ones are kept and ignored (`docs/spec/record.md#capabilities`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// The node serves the authenticated lane.
    pub const AUTHENTICATED_LANE: Self = Self(1);

    /// Bits as they travel.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Bits as they travel.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The content of a record, not yet signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordContent {
    /// Who signs.
    pub identity: IdentityKey,
    /// The node's Noise static key.
    pub transport_key: TransportPublicKey,
    /// The higher one of two records of an identity is in force.
    pub sequence: u64,
    /// Milliseconds since the Unix epoch from which the record is void.
    pub expiry_ms: u64,
    /// Where handshakes and sealed data are received.
    pub authenticated: LaneAddresses,
    /// Where plain datagrams are received and sent from.
    pub plain: LaneAddresses,
    /// What the node can do.
    pub capabilities: Capabilities,
    /// Bit `n` is suite `n`; unknown ones are kept and ignored. Suite 0 is always understood.
    pub suites: u16,
    /// Longest UDP payload that the node's links carry unfragmented, in bytes.
    pub max_datagram: u16,
    /// Longest chunk that the node can send and receive on both lanes, in bytes without frame.
    pub max_chunk: u16,
}

/// A record whose signature was verified, or that was signed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRecord {
    content: RecordContent,
    signature: Signature,
}

/// A well-formed record: its signature is still to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedRecord(PeerRecord);

impl PeerRecord {
    /// Signs `content`. May take as long as a remote signer does.
    ///
    /// # Errors
    ///
    /// [`RecordError::Signer`] if there is no signature, [`RecordError::WrongIdentity`] if the signer
    /// signs for somebody else.
    pub fn sign(
        content: RecordContent,
        network: &NetworkId,
        signer: &dyn Signer,
    ) -> Result<Self, RecordError> {
        if signer.identity() != content.identity {
            return Err(RecordError::WrongIdentity);
        }
        let fields = codec::encode_content(&content);
        let signature = signer.sign(Purpose::Record, network, &[&fields])?;
        Ok(Self { content, signature })
    }

    /// The one encoding of this record; at most [`MAX_RECORD_LEN`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = codec::encode_content(&self.content);
        bytes.extend(self.signature.as_bytes());
        bytes
    }

    /// Parses an encoding. Exactly one encoding of a record is accepted; `docs/spec/record.md#canonical`.
    ///
    /// # Errors
    ///
    /// [`RecordError`] that says what is malformed.
    pub fn decode(bytes: &[u8]) -> Result<UnverifiedRecord, RecordError> {
        let (content, signature) = codec::decode(bytes)?;
        Ok(UnverifiedRecord(Self { content, signature }))
    }

    /// What was signed.
    #[must_use]
    pub fn content(&self) -> &RecordContent {
        &self.content
    }

    /// Whether this record takes the place of `other`; `docs/spec/record.md#sequence`.
    #[must_use]
    pub fn supersedes(&self, other: &Self) -> bool {
        self.content.identity == other.content.identity && self.content.sequence > other.content.sequence
    }

    /// The peer that the record describes, with defaults for all that it does not say.
    #[must_use]
    pub fn peer_config(&self) -> PeerConfig {
        let content = &self.content;
        let is_served = content.capabilities.contains(Capabilities::AUTHENTICATED_LANE);
        let has_aes = content.suites & (1 << 1) != 0;
        PeerConfig {
            transport_key: is_served.then_some(content.transport_key),
            identity: Some(content.identity),
            address: content.authenticated.preferred().filter(|_| is_served),
            plain_address: content.plain.preferred(),
            suites: if has_aes {
                vec![Suite::Aes256Gcm]
            } else {
                Vec::new()
            },
            record_sequence: Some(content.sequence),
            ..PeerConfig::default()
        }
    }
}

impl UnverifiedRecord {
    /// What it claims, for choosing whether to verify it at all.
    #[must_use]
    pub fn claims(&self) -> &RecordContent {
        &self.0.content
    }

    /// Verifies signature and expiry; `docs/spec/record.md#signature`.
    ///
    /// # Errors
    ///
    /// [`RecordError::BadSignature`], also for a record of another network; [`RecordError::Expired`].
    pub fn verify(self, network: &NetworkId, now: Now) -> Result<PeerRecord, RecordError> {
        let content = &self.0.content;
        if content.expiry_ms <= now.unix_ms() {
            return Err(RecordError::Expired);
        }
        let fields = codec::encode_content(content);
        content
            .identity
            .verify(Purpose::Record, network, &[&fields], &self.0.signature)?;
        Ok(self.0)
    }
}

/// Why there is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Shorter or longer than its content says.
    #[error("the record is not as long as its content says")]
    Length,
    /// The version byte is not 1.
    #[error("unknown version of a record")]
    Version,
    /// More than four addresses.
    #[error("too many addresses")]
    TooManyAddresses,
    /// An unknown kind, a kind twice, or kinds that do not ascend.
    #[error("addresses are of an unknown kind, doubled or out of order")]
    AddressOrder,
    /// Port 0, or an unspecified or multicast IP address.
    #[error("an address that nothing can be sent to")]
    BadAddress,
    /// Suite 0 is missing from the list of suites.
    #[error("suite 0 is not listed")]
    Suites,
    /// The signature is not one of the identity for this network.
    #[error("bad signature")]
    BadSignature,
    /// The expiry has passed.
    #[error("the record has expired")]
    Expired,
    /// The signer signs for another identity than the record's.
    #[error("the signer is not the record's identity")]
    WrongIdentity,
    /// The record names another transport key than the node's.
    #[error("the record names another transport key")]
    WrongKey,
    /// The signer gave no signature.
    #[error("not signed: {0}")]
    Signer(#[from] SignError),
}

impl From<BadSignature> for RecordError {
    fn from(_: BadSignature) -> Self {
        Self::BadSignature
    }
}

#[cfg(test)]
mod tests;
