//! Reading the clocks, once a batch.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use falconet_crypto::Now;

/// Both clocks now. A wall clock before 1970 reads as 1970.
pub(crate) fn read_clock() -> Now {
    Now {
        instant: Instant::now(),
        unix: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO),
    }
}
