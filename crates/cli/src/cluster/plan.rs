//! Who is where and speaks what: everything about a cluster that is decided before it starts.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Position of a node in its cluster; node 0 leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeNumber(pub(crate) usize);

impl NodeNumber {
    /// The node that broadcasts.
    pub(crate) const LEADER: Self = Self(0);
}

impl fmt::Display for NodeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a run measures, and the name of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Lane {
    /// All nodes speak only the authenticated lane.
    Auth,
    /// All nodes speak only the plain lane.
    Plain,
    /// Nodes with even numbers speak both lanes, the others only plain.
    Mixed,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auth => "auth",
            Self::Plain => "plain",
            Self::Mixed => "mixed",
        })
    }
}

/// The lanes that one node listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speaks {
    pub(crate) auth: bool,
    pub(crate) plain: bool,
}

/// The shape of a cluster: its nodes, and the distances between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    nodes: usize,
    buckets: usize,
    bucket_delay: Duration,
}

impl Plan {
    /// `nodes` spread over `buckets`, neighbouring ones `bucket_delay` apart.
    pub(crate) fn new(nodes: usize, buckets: usize, bucket_delay: Duration) -> Self {
        Self {
            nodes,
            buckets,
            bucket_delay,
        }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes
    }

    /// All nodes, the leader first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeNumber> + use<> {
        (0..self.nodes).map(NodeNumber)
    }

    /// The bucket of a node: nodes fill buckets in order, evenly.
    pub(crate) fn bucket(&self, node: NodeNumber) -> usize {
        node.0 * self.buckets / self.nodes
    }

    /// One-way delay between two nodes, the same in both directions.
    pub(crate) fn delay(&self, a: NodeNumber, b: NodeNumber) -> Duration {
        // At most 99 buckets apart, so this fits.
        self.bucket_delay * self.bucket(a).abs_diff(self.bucket(b)) as u32
    }

    /// The longest one-way delay between any two nodes.
    pub(crate) fn longest_delay(&self) -> Duration {
        self.delay(NodeNumber(0), NodeNumber(self.nodes - 1))
    }

    /// The lanes that `node` listens on in a run of `lane`.
    pub(crate) fn speaks(&self, lane: Lane, node: NodeNumber) -> Speaks {
        match lane {
            Lane::Auth => Speaks {
                auth: true,
                plain: false,
            },
            Lane::Plain => Speaks {
                auth: false,
                plain: true,
            },
            Lane::Mixed => Speaks {
                auth: node.0.is_multiple_of(2),
                plain: true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: usize, buckets: usize) -> Plan {
        Plan::new(nodes, buckets, Duration::from_millis(20))
    }

    #[test]
    fn nodes_fill_buckets_in_order_and_evenly() {
        let spread = |nodes, buckets| {
            let plan = plan(nodes, buckets);
            plan.nodes().map(|node| plan.bucket(node)).collect::<Vec<_>>()
        };
        assert_eq!(spread(6, 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(spread(5, 2), [0, 0, 0, 1, 1]);
        assert_eq!(spread(4, 1), [0, 0, 0, 0]);
    }

    #[test]
    fn no_bucket_is_empty_and_sizes_differ_by_one_at_most() {
        for nodes in 2..=100 {
            for buckets in 1..=nodes {
                let plan = plan(nodes, buckets);
                let mut sizes = vec![0_usize; buckets];
                for node in plan.nodes() {
                    sizes[plan.bucket(node)] += 1;
                }
                let (min, max) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                assert!(
                    *min >= 1 && max - min <= 1,
                    "{nodes} nodes, {buckets} buckets: {sizes:?}"
                );
            }
        }
    }

    #[test]
    fn delay_is_the_distance_of_the_buckets_both_ways() {
        let plan = plan(10, 10);
        assert_eq!(
            plan.delay(NodeNumber(2), NodeNumber(7)),
            Duration::from_millis(100)
        );
        assert_eq!(
            plan.delay(NodeNumber(7), NodeNumber(2)),
            Duration::from_millis(100)
        );
        assert_eq!(plan.delay(NodeNumber(3), NodeNumber(3)), Duration::ZERO);
        assert_eq!(plan.longest_delay(), Duration::from_millis(180));
    }

    #[test]
    fn in_mixed_every_second_node_speaks_only_plain_and_all_can_reach_each_other() {
        let plan = plan(5, 1);
        let auth: Vec<_> = plan
            .nodes()
            .map(|node| plan.speaks(Lane::Mixed, node).auth)
            .collect();
        assert_eq!(auth, [true, false, true, false, true]);
        assert!(plan.nodes().all(|node| plan.speaks(Lane::Mixed, node).plain));
    }
}
