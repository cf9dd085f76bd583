//! The bytes of a record; layout in `docs/spec/record.md#layout`.

use super::{Capabilities, LaneAddresses, RecordContent, RecordError};
use falconet_crypto::{IdentityKey, Signature, TransportPublicKey};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

pub(super) const FIXED_LEN: usize = 92;
pub(super) const SIGNATURE_LEN: usize = 64;
const VERSION: u8 = 1;
const MAX_ADDRESSES: u8 = 4;

/// Kinds of an address, in the order in which they stand.
const AUTHENTICATED_V4: u8 = 0x04;
const AUTHENTICATED_V6: u8 = 0x06;
const PLAIN_V4: u8 = 0x14;
const PLAIN_V6: u8 = 0x16;

pub(super) fn encode_content(content: &RecordContent) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(super::MAX_RECORD_LEN);
    let (sealed, plain) = (&content.authenticated, &content.plain);
    let present = [
        sealed.v4.is_some(),
        sealed.v6.is_some(),
        plain.v4.is_some(),
        plain.v6.is_some(),
    ];
    bytes.push(VERSION);
    bytes.push(present.into_iter().map(u8::from).sum());
    bytes.extend(content.suites.to_le_bytes());
    bytes.extend(content.capabilities.bits().to_le_bytes());
    bytes.extend(content.max_datagram.to_le_bytes());
    bytes.extend(content.max_chunk.to_le_bytes());
    bytes.extend(content.identity.as_bytes());
    bytes.extend(content.transport_key.as_bytes());
    bytes.extend(content.sequence.to_le_bytes());
    bytes.extend(content.expiry_ms.to_le_bytes());
    for (v4_kind, v6_kind, lane) in [
        (AUTHENTICATED_V4, AUTHENTICATED_V6, sealed),
        (PLAIN_V4, PLAIN_V6, plain),
    ] {
        if let Some(v4) = lane.v4 {
            bytes.push(v4_kind);
            bytes.extend(v4.ip().octets());
            bytes.extend(v4.port().to_le_bytes());
        }
        if let Some(v6) = lane.v6 {
            bytes.push(v6_kind);
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.port().to_le_bytes());
        }
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<(RecordContent, Signature), RecordError> {
    let mut reader = Reader(bytes);
    if reader.array()? != [VERSION] {
        return Err(RecordError::Version);
    }
    let [count] = reader.array()?;
    if count > MAX_ADDRESSES {
        return Err(RecordError::TooManyAddresses);
    }
    let suites = u16::from_le_bytes(reader.array()?);
    if suites & 1 == 0 {
        return Err(RecordError::Suites);
    }
    let mut content = RecordContent {
        suites,
        capabilities: Capabilities::from_bits(u32::from_le_bytes(reader.array()?)),
        max_datagram: u16::from_le_bytes(reader.array()?),
        max_chunk: u16::from_le_bytes(reader.array()?),
        identity: IdentityKey::from_bytes(reader.array()?),
        transport_key: TransportPublicKey::from_bytes(reader.array()?),
        sequence: u64::from_le_bytes(reader.array()?),
        expiry_ms: u64::from_le_bytes(reader.array()?),
        authenticated: LaneAddresses::default(),
        plain: LaneAddresses::default(),
    };
    decode_addresses(&mut reader, count, &mut content)?;
    let signature = Signature::from_bytes(reader.array()?);
    if !reader.0.is_empty() {
        return Err(RecordError::Length);
    }
    Ok((content, signature))
}

/// Strictly ascending kinds: none twice, and one order only.
fn decode_addresses(
    reader: &mut Reader<'_>,
    count: u8,
    content: &mut RecordContent,
) -> Result<(), RecordError> {
    let mut last = 0;
    for _ in 0..count {
        let [kind] = reader.array()?;
        if kind <= last {
            return Err(RecordError::AddressOrder);
        }
        last = kind;
        match kind {
            AUTHENTICATED_V4 => content.authenticated.v4 = Some(reader.v4()?),
            AUTHENTICATED_V6 => content.authenticated.v6 = Some(reader.v6()?),
            PLAIN_V4 => content.plain.v4 = Some(reader.v4()?),
            PLAIN_V6 => content.plain.v6 = Some(reader.v6()?),
            _ => return Err(RecordError::AddressOrder),
        }
    }
    Ok(())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (head, tail) = self.0.split_first_chunk().ok_or(RecordError::Length)?;
        self.0 = tail;
        Ok(*head)
    }

    fn v4(&mut self) -> Result<SocketAddrV4, RecordError> {
        let ip = Ipv4Addr::from(self.array::<4>()?);
        let port = self.port(ip.into())?;
        Ok(SocketAddrV4::new(ip, port))
    }

    fn v6(&mut self) -> Result<SocketAddrV6, RecordError> {
        let ip = Ipv6Addr::from(self.array::<16>()?);
        let port = self.port(ip.into())?;
        Ok(SocketAddrV6::new(ip, port, 0, 0))
    }

    fn port(&mut self, ip: IpAddr) -> Result<u16, RecordError> {
        let port = u16::from_le_bytes(self.array()?);
        if port == 0 || ip.is_unspecified() || ip.is_multicast() {
            return Err(RecordError::BadAddress);
        }
        Ok(port)
    }
}
