//! The published run of the reference system in the same geometry: 100 nodes in 10 buckets, 20 ms a bucket, 2 MB every
//! second, 1 Gbit/s a node.

use crate::cluster::Lane;

/// One row of the published table, in milliseconds.
pub(crate) struct Published {
    pub(crate) lane: Lane,
    pub(crate) count: usize,
    pub(crate) mean: f64,
    pub(crate) std: f64,
    /// p50, p70, p90, p95, p99.
    pub(crate) percentiles: [f64; 5],
}

/// The published rows.
pub(crate) const ROWS: [Published; 2] = [
    Published {
        lane: Lane::Auth,
        count: 28_631,
        mean: 261.2,
        std: 31.8,
        percentiles: [261.8, 279.8, 300.2, 307.8, 326.2],
    },
    Published {
        lane: Lane::Plain,
        count: 51_033,
        mean: 259.4,
        std: 31.1,
        percentiles: [260.9, 279.4, 299.1, 306.2, 321.3],
    },
];
