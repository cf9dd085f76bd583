//! Values that are text in the configuration: parsed where they stand, so that an error names its line.

use std::time::Duration;

use falconet::{IdentityKey, Stake, TransportPublicKey};
use serde::Deserialize;

use crate::args::{self, NotAllowed, RateLimit};

/// A public key that names a node.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Identity(pub(super) IdentityKey);

impl TryFrom<String> for Identity {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|error| format!("this is no identity: {error}"))
    }
}

/// A public key that sessions are made with.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Transport(pub(super) TransportPublicKey);

impl TryFrom<String> for Transport {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|error| format!("this is no transport key: {error}"))
    }
}

/// A pace, as the flag `--rate` takes it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pace(pub(super) RateLimit);

impl TryFrom<String> for Pace {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        quantity("rate", args::rate(&text)).map(Self)
    }
}

/// Bytes of a payload, as the flag `--size` takes them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Size(pub(super) usize);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        quantity("size", args::size(&text)).map(Self)
    }
}

/// A time, as the flag `--interval` takes it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Interval(pub(super) Duration);

impl TryFrom<String> for Interval {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        quantity("interval", args::interval(&text)).map(Self)
    }
}

fn quantity<T>(flag: &str, parsed: Result<T, NotAllowed>) -> Result<T, String> {
    parsed.map_err(|_| format!("allowed: {}", args::allowed(flag).unwrap_or_default()))
}

/// Units of stake; above what a TOML number holds, as text.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "StakeText")]
pub(super) struct StakeUnits(pub(super) Stake);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a stake: a whole number, in quotes from 2^63")]
enum StakeText {
    Number(u64),
    Text(String),
}

impl TryFrom<StakeText> for StakeUnits {
    type Error = String;

    fn try_from(text: StakeText) -> Result<Self, String> {
        let units = match text {
            StakeText::Number(units) => u128::from(units),
            StakeText::Text(text) => text
                .parse()
                .map_err(|_| "a stake is a whole number below 2^128".to_owned())?,
        };
        Ok(Self(Stake::new(units)))
    }
}
