//! Parsers of numbers with and without a unit. None of them rounds: a value that is not exact is refused.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::allowed;

/// The value is not one of those that the flag allows; [`super::usage`] says which are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not allowed")]
pub(crate) struct NotAllowed;

/// Pace of a node's sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateLimit {
    /// As fast as the sockets take it.
    Unlimited,
    /// Bits per second.
    BitsPerSecond(u64),
}

impl From<RateLimit> for falconet::Rate {
    fn from(limit: RateLimit) -> Self {
        match limit {
            RateLimit::Unlimited => Self::Unlimited,
            RateLimit::BitsPerSecond(bits) => Self::BitsPerSecond(bits),
        }
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::BitsPerSecond(bits) = *self else {
            return f.write_str("unlimited");
        };
        let (unit, name) = RATE_UNITS
            .into_iter()
            .rev()
            .find(|(name, unit)| bits >= *unit && !name.is_empty())
            .map_or((1, "bps"), |(name, unit)| (unit, name));
        write!(f, "{}{name}", bits as f64 / unit as f64)
    }
}

const RATE_UNITS: [(&str, u64); 4] = [
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
];

const SIZE_UNITS: [(&str, u64); 6] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
];

/// In nanoseconds.
const TIME_UNITS: [(&str, u64); 5] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

pub(super) fn nodes(text: &str) -> Result<usize, NotAllowed> {
    whole(text, &allowed::NODES)
}

pub(super) fn rounds(text: &str) -> Result<u64, NotAllowed> {
    whole(text, &allowed::ROUNDS)
}

pub(super) fn buckets(text: &str) -> Result<usize, NotAllowed> {
    whole(text, &allowed::BUCKETS)
}

pub(super) fn bucket_ms(text: &str) -> Result<u64, NotAllowed> {
    whole(text, &allowed::BUCKET_MS)
}

pub(super) fn seed(text: &str) -> Result<u64, NotAllowed> {
    whole(text, &(0..=u64::MAX))
}

pub(super) fn sim_nodes(text: &str) -> Result<usize, NotAllowed> {
    whole(text, &allowed::SIM_NODES)
}

pub(super) fn messages(text: &str) -> Result<u32, NotAllowed> {
    u32::try_from(rounds(text)?).map_err(|_| NotAllowed)
}

pub(super) fn hours(text: &str) -> Result<u32, NotAllowed> {
    whole(text, &allowed::HOURS)
}

pub(super) fn seeds(text: &str) -> Result<u64, NotAllowed> {
    whole(text, &allowed::SEEDS)
}

pub(super) fn shared_cores(text: &str) -> Result<usize, NotAllowed> {
    whole(text, &allowed::SHARED_CORES)
}

/// In hundredths.
pub(super) fn redundancy(text: &str) -> Result<u16, NotAllowed> {
    let hundredths = within(with_unit(text, &[("", 100)])?, &allowed::REDUNDANCY)?;
    u16::try_from(hundredths).map_err(|_| NotAllowed)
}

pub(super) fn jitter(text: &str) -> Result<Duration, NotAllowed> {
    within(
        Duration::from_nanos(with_unit(text, &TIME_UNITS)?),
        &allowed::JITTER,
    )
}

pub(super) fn loss(text: &str) -> Result<f64, NotAllowed> {
    // `f64` alone would also take "inf", "1e-3" and "+0.1".
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(NotAllowed);
    }
    within(text.parse().map_err(|_| NotAllowed)?, &allowed::LOSS)
}

pub(crate) fn size(text: &str) -> Result<usize, NotAllowed> {
    let bytes = with_unit(text, &SIZE_UNITS)?;
    within(usize::try_from(bytes).map_err(|_| NotAllowed)?, &allowed::SIZE)
}

pub(crate) fn interval(text: &str) -> Result<Duration, NotAllowed> {
    within(
        Duration::from_nanos(with_unit(text, &TIME_UNITS)?),
        &allowed::INTERVAL,
    )
}

pub(crate) fn rate(text: &str) -> Result<RateLimit, NotAllowed> {
    if text == "unlimited" {
        return Ok(RateLimit::Unlimited);
    }
    Ok(RateLimit::BitsPerSecond(within(
        with_unit(text, &RATE_UNITS)?,
        &allowed::RATE,
    )?))
}

/// A whole number in decimal digits: no sign, no blanks.
fn whole<T: FromStr + PartialOrd>(text: &str, range: &RangeInclusive<T>) -> Result<T, NotAllowed> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAllowed);
    }
    within(text.parse().map_err(|_| NotAllowed)?, range)
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>) -> Result<T, NotAllowed> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(NotAllowed)
    }
}

/// A decimal number with a unit (in any case), in the base unit, if that is a whole number below 2^64.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Result<u64, NotAllowed> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let unit = units
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .ok_or(NotAllowed)?
        .1;

    let (integer, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // 18 digits keep every product below inside a `u128`.
    if integer.is_empty() || fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return Err(NotAllowed);
    }
    let integer: u64 = integer.parse().map_err(|_| NotAllowed)?;
    let scale = 10_u128.pow(fraction.len() as u32);
    let fraction: u64 = fraction.parse().map_err(|_| NotAllowed)?;
    let scaled = (u128::from(integer) * scale + u128::from(fraction))
        .checked_mul(u128::from(unit))
        .ok_or(NotAllowed)?;
    if scaled % scale != 0 {
        return Err(NotAllowed);
    }
    u64::try_from(scaled / scale).map_err(|_| NotAllowed)
}
