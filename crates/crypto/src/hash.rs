//! BLAKE2s: hash, keyed hash, HMAC and the key derivation of WireGuard.
//!
//! Every function takes its input as parts and hashes their concatenation, so that no caller
//! has to build a buffer.

use blake2::{
    Blake2s256, Blake2sMac, Digest,
    digest::{FixedOutput, Update, consts::U16},
};
use zeroize::Zeroizing;

use crate::SecretBytes;

/// Bytes of a BLAKE2s hash.
pub const HASH_LEN: usize = 32;
/// Bytes of a keyed MAC (mac1, mac2, the cookie).
pub const MAC_LEN: usize = 16;

/// Block size of BLAKE2s, which HMAC pads its key to (RFC 7693, section 2.1).
const BLOCK_LEN: usize = 64;
/// Longest key that BLAKE2s itself takes (RFC 7693, section 2.1).
const MAX_MAC_KEY_LEN: usize = 32;

/// BLAKE2s-256 of the concatenated parts (RFC 7693).
#[must_use]
pub fn blake2s(parts: &[&[u8]]) -> [u8; HASH_LEN] {
    let mut hash = Blake2s256::new();
    for part in parts {
        Digest::update(&mut hash, part);
    }
    hash.finalize().into()
}

/// BLAKE2s keyed, with 16 bytes of output: WireGuard's `Mac`.
///
/// Keys have 1 to 32 bytes. A longer key is hashed first, as HMAC does; an empty key gives the
/// unkeyed hash with 16 bytes of output (RFC 7693, section 2.9).
#[must_use]
pub fn blake2s_mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_LEN] {
    if key.len() > MAX_MAC_KEY_LEN {
        return blake2s_mac(&blake2s(&[key]), parts);
    }
    let key = (!key.is_empty()).then_some(key);
    let mut mac = Blake2sMac::<U16>::new_with_salt_and_personal(key, &[], &[])
        .expect("1 to 32 bytes are a key, no key is none");
    for part in parts {
        mac.update(part);
    }
    mac.finalize_fixed().into()
}

/// HMAC-BLAKE2s of the concatenated parts (RFC 2104 over RFC 7693).
#[must_use]
pub fn hmac_blake2s(key: &[u8], parts: &[&[u8]]) -> [u8; HASH_LEN] {
    let mut block = Zeroizing::new([0; BLOCK_LEN]);
    if key.len() > BLOCK_LEN {
        block[..HASH_LEN].copy_from_slice(&blake2s(&[key]));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    block.iter_mut().for_each(|byte| *byte ^= 0x36);
    let mut inner = Blake2s256::new_with_prefix(*block);
    for part in parts {
        Digest::update(&mut inner, part);
    }
    block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
    let mut outer = Blake2s256::new_with_prefix(*block);
    Digest::update(
        &mut outer,
        Zeroizing::new(<[u8; HASH_LEN]>::from(inner.finalize())),
    );
    outer.finalize().into()
}

/// WireGuard's `KDF_1`: HKDF with HMAC-BLAKE2s, one output.
#[must_use]
pub fn kdf1(key: &[u8; 32], input: &[u8]) -> SecretBytes {
    let [first] = kdf(key, input);
    first
}

/// WireGuard's `KDF_2`: HKDF with HMAC-BLAKE2s, two outputs.
#[must_use]
pub fn kdf2(key: &[u8; 32], input: &[u8]) -> (SecretBytes, SecretBytes) {
    let [first, second] = kdf(key, input);
    (first, second)
}

/// WireGuard's `KDF_3`: HKDF with HMAC-BLAKE2s, three outputs.
#[must_use]
pub fn kdf3(key: &[u8; 32], input: &[u8]) -> (SecretBytes, SecretBytes, SecretBytes) {
    let [first, second, third] = kdf(key, input);
    (first, second, third)
}

/// HKDF (RFC 5869) with `key` as salt and no info; `N` is at most 3.
fn kdf<const N: usize>(key: &[u8; 32], input: &[u8]) -> [SecretBytes; N] {
    let extracted = SecretBytes::new(hmac_blake2s(key, &[input]));
    let mut previous: Zeroizing<[u8; HASH_LEN]> = Zeroizing::default();
    let mut counter = 0;
    std::array::from_fn(|_| {
        // The first block of HKDF-Expand has no predecessor.
        let chained: &[u8] = if counter == 0 { &[] } else { &*previous };
        counter += 1;
        let block = hmac_blake2s(extracted.expose(), &[chained, &[counter]]);
        *previous = block;
        SecretBytes::new(block)
    })
}

#[cfg(test)]
mod tests;
