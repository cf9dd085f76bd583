//! What work costs: the CPU time that nodes of a simulation are charged.
//!
//! A run charges every operation from a table and never looks at a clock, so one seed gives one run on every
//! machine. Times are in nanoseconds of one core, written `fixed + per_byte * bytes`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The table that runs are charged by unless another is named: the machine of docs/benchmarks.md, which says under
/// "Where the costs come from" which of them a bench measured and which are estimates.
const REFERENCE: &str = include_str!("../data/costs-reference.json");
/// A projection: the figures of the design for single operations on a Zen 5 core with SHA extensions. This project has
/// not been run on one.
const ZEN5: &str = include_str!("../data/costs-zen5.json");

/// The most that one operation of a table may cost for a byte or by itself, in nanoseconds: a second.
const MAX_NANOS: f64 = 1e9;

/// Cost of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Nanoseconds by itself.
    pub fixed_ns: f64,
    /// Nanoseconds for each byte.
    #[serde(default)]
    pub per_byte_ns: f64,
}

impl Cost {
    /// What the operation costs on this many bytes.
    #[must_use]
    pub fn of(&self, bytes: usize) -> Duration {
        // Rounded to whole nanoseconds: the sum is the same on every machine.
        Duration::from_nanos((self.fixed_ns + self.per_byte_ns * bytes as f64).round() as u64)
    }
}

/// What every operation costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Where the figures come from, for reports.
    pub machine: String,
    /// A datagram sealed, by its plaintext.
    pub seal: Cost,
    /// A datagram opened, by its plaintext.
    pub open: Cost,
    /// A datagram handed to the kernel, its share of a segmented send.
    pub send: Cost,
    /// A datagram taken from the kernel, its share of an aggregate.
    pub receive: Cost,
    /// A thread that slept is running again.
    pub wake: Cost,
    /// An initiation made, or a response consumed.
    pub dial: Cost,
    /// An initiation consumed and its response made.
    pub accept: Cost,
    /// A payload encoded, committed to and signed, by the bytes of all its symbols.
    pub encode: Cost,
    /// A symbol checked against its commitment, by its chunk.
    pub verify: Cost,
    /// A chunk dropped before its proof was looked at.
    pub discard: Cost,
    /// A payload decoded, by its bytes.
    pub decode: Cost,
    /// A payload encoded again and its root compared, by the bytes of all its symbols.
    pub check: Cost,
}

/// A table that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CostsError {
    /// Not the JSON of a table.
    #[error("not a cost table: {0}")]
    Json(#[from] serde_json::Error),
    /// A figure that is no cost.
    #[error("{operation}: {value} ns is not a cost from 0 to 1 s")]
    Value {
        /// Which operation.
        operation: &'static str,
        /// What stands there.
        value: f64,
    },
    /// An operation that costs nothing, which no machine does.
    #[error("{0} costs nothing: no machine does it for free")]
    Free(&'static str),
}

impl Costs {
    /// The committed table of the machine that this project is measured on.
    ///
    /// # Errors
    ///
    /// None as long as the file that ships is whole.
    pub fn reference() -> Result<Self, CostsError> {
        Self::from_json(REFERENCE)
    }

    /// The committed projection from the design's figures for a Zen 5 core.
    ///
    /// # Errors
    ///
    /// None as long as the file that ships is whole.
    pub fn zen5() -> Result<Self, CostsError> {
        Self::from_json(ZEN5)
    }

    /// Reads a table.
    ///
    /// # Errors
    ///
    /// [`CostsError`] names the operation that is wrong.
    pub fn from_json(text: &str) -> Result<Self, CostsError> {
        let costs: Self = serde_json::from_str(text)?;
        for (operation, cost) in costs.operations() {
            for value in [cost.fixed_ns, cost.per_byte_ns] {
                if !(0.0..=MAX_NANOS).contains(&value) {
                    return Err(CostsError::Value { operation, value });
                }
            }
            if cost.fixed_ns + cost.per_byte_ns == 0.0 {
                return Err(CostsError::Free(operation));
            }
        }
        Ok(costs)
    }

    /// Every operation with its name.
    #[must_use]
    pub fn operations(&self) -> [(&'static str, Cost); 12] {
        [
            ("seal", self.seal),
            ("open", self.open),
            ("send", self.send),
            ("receive", self.receive),
            ("wake", self.wake),
            ("dial", self.dial),
            ("accept", self.accept),
            ("encode", self.encode),
            ("verify", self.verify),
            ("discard", self.discard),
            ("decode", self.decode),
            ("check", self.check),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_that_ship_can_be_used() {
        for costs in [Costs::reference().unwrap(), Costs::zen5().unwrap()] {
            let sealed = costs.seal.of(1_440);
            assert!(sealed > costs.seal.of(32), "{}: {sealed:?}", costs.machine);
        }
    }

    #[test]
    fn a_free_negative_or_unknown_operation_is_refused_by_name() {
        let text = serde_json::to_string(&Costs::reference().unwrap()).unwrap();
        let with = |operation: &str, cost: &str| {
            let mut table: serde_json::Value = serde_json::from_str(&text).unwrap();
            table[operation] = serde_json::from_str(cost).unwrap();
            Costs::from_json(&table.to_string()).unwrap_err().to_string()
        };
        assert!(with("open", r#"{"fixed_ns":0}"#).contains("open costs nothing"));
        assert!(with("open", r#"{"fixed_ns":-1}"#).contains("open: -1 ns"));
        assert!(with("check", r#"{"fixed_ns":1,"per_byte_ns":1e10}"#).contains("check"));
        assert!(with("teleport", r#"{"fixed_ns":1}"#).contains("unknown field"));
        assert!(
            Costs::from_json("{}")
                .unwrap_err()
                .to_string()
                .contains("missing field")
        );
    }
}
