//! What a node says of itself in its record.

use std::time::Duration;

use falconet_transport::LaneAddresses;

/// A year: a record that is published again after changes need not be watched.
const DEFAULT_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3_600);

/// What a node says of itself in its record, besides keys, suites and sizes, which are those of its configuration.
#[derive(Clone, Debug)]
#[must_use = "publish it"]
pub struct OwnRecord {
    pub(crate) authenticated: Option<LaneAddresses>,
    pub(crate) plain: Option<LaneAddresses>,
    pub(crate) serves_authenticated: bool,
    pub(crate) validity: Duration,
}

impl Default for OwnRecord {
    fn default() -> Self {
        Self {
            authenticated: None,
            plain: None,
            serves_authenticated: true,
            validity: DEFAULT_VALIDITY,
        }
    }
}

impl OwnRecord {
    /// A record with the addresses that the node listens on, valid for a year.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where peers reach the authenticated lane. Default: where it listens, which has to be one address then.
    pub fn with_authenticated(mut self, addresses: LaneAddresses) -> Self {
        self.authenticated = Some(addresses);
        self
    }

    /// Where peers reach the plain lane and expect what comes from it. Default: where it listens.
    pub fn with_plain(mut self, addresses: LaneAddresses) -> Self {
        self.plain = Some(addresses);
        self
    }

    /// How long it is valid. Default: 365 days.
    pub fn with_validity(mut self, validity: Duration) -> Self {
        self.validity = validity;
        self
    }

    /// Says that the node no longer serves the authenticated lane, although it listens there: peers whose policy had
    /// become sticky go back to the plain lane (docs/spec/rollout.md#sticky).
    pub fn without_authenticated_lane(mut self) -> Self {
        self.serves_authenticated = false;
        self
    }
}
