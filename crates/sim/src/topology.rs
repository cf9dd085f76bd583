//! Where the nodes are, and how far apart.

use std::time::Duration;

use thiserror::Error;

/// The matrix that ships with the simulator; its first lines name the source.
const REGIONS: &str = include_str!("../data/region-rtt-ms.csv");
/// Sites that a matrix may have.
const MAX_SITES: usize = 256;
/// The longest round trip that a matrix may hold, in milliseconds: past it somebody has mistaken the unit.
const MAX_RTT_MS: f64 = 10_000.0;

/// Sites with the one-way delay between any two, and the nodes spread over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    names: Vec<String>,
    /// One-way delays, row by row.
    delays: Vec<Duration>,
    nodes: usize,
}

/// A latency matrix that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// There is no line with names.
    #[error("the matrix is empty: expected a line `region,NAME,...` and a line for each name")]
    Empty,
    /// More sites than can be simulated.
    #[error("{0} sites: at most {MAX_SITES} are allowed")]
    TooManySites(usize),
    /// A line has not one value for each name.
    #[error("line {line} has {found} values, expected {expected}: one for each name of the first line")]
    Width {
        /// Which line, from 1.
        line: usize,
        /// Values in it.
        found: usize,
        /// Names in the first line.
        expected: usize,
    },
    /// The rows are not those of the header, in the same order.
    #[error("line {line} is for {found:?}, expected {expected:?}: rows come in the order of the columns")]
    Order {
        /// Which line, from 1.
        line: usize,
        /// The name that it starts with.
        found: String,
        /// The name that belongs there.
        expected: String,
    },
    /// Fewer rows than columns.
    #[error("{found} rows for {expected} names")]
    Rows {
        /// Rows found.
        found: usize,
        /// Names in the first line.
        expected: usize,
    },
    /// A value that is no round trip.
    #[error("line {line}: {value:?} is not a round trip in milliseconds from 0 to 10,000")]
    Value {
        /// Which line, from 1.
        line: usize,
        /// What stands there.
        value: String,
    },
}

impl Topology {
    /// `nodes` spread evenly over `buckets` in a row; the delay is the distance in buckets times `step`.
    #[must_use]
    pub fn buckets(nodes: usize, buckets: usize, step: Duration) -> Self {
        let buckets = buckets.clamp(1, nodes.max(1));
        let delays = (0..buckets).flat_map(|a| (0..buckets).map(move |b| step * a.abs_diff(b) as u32));
        Self {
            names: (0..buckets).map(|bucket| format!("bucket {bucket}")).collect(),
            delays: delays.collect(),
            nodes,
        }
    }

    /// `nodes` spread evenly over ten real cloud regions.
    ///
    /// # Errors
    ///
    /// None as long as the file that ships is whole.
    pub fn regions(nodes: usize) -> Result<Self, TopologyError> {
        Self::from_csv(REGIONS, nodes)
    }

    /// `nodes` spread evenly over the sites of a matrix of round-trip times in milliseconds. Lines that start with
    /// `#` are comments; the first other line names the columns, and each after it starts with its own name. The
    /// one-way delay is half a round trip.
    ///
    /// # Errors
    ///
    /// [`TopologyError`] names the line.
    pub fn from_csv(text: &str, nodes: usize) -> Result<Self, TopologyError> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let (_, header) = lines.next().ok_or(TopologyError::Empty)?;
        let names: Vec<_> = cells(header).skip(1).map(str::to_owned).collect();
        match names.len() {
            0 => return Err(TopologyError::Empty),
            1..=MAX_SITES => {}
            sites => return Err(TopologyError::TooManySites(sites)),
        }
        let mut delays = Vec::with_capacity(names.len() * names.len());
        let mut rows = 0;
        for (line, text) in lines {
            delays.extend(row(line, text, &names, names.get(rows))?);
            rows += 1;
        }
        if rows != names.len() {
            return Err(TopologyError::Rows {
                found: rows,
                expected: names.len(),
            });
        }
        Ok(Self { names, delays, nodes })
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The names of the sites.
    #[must_use]
    pub fn sites(&self) -> &[String] {
        &self.names
    }

    /// The site of a node: nodes fill the sites in order, evenly.
    #[must_use]
    pub fn site(&self, node: usize) -> usize {
        node * self.names.len().min(self.nodes) / self.nodes.max(1)
    }

    /// One-way delay from node `a` to node `b`.
    #[must_use]
    pub fn delay(&self, a: usize, b: usize) -> Duration {
        self.delays[self.site(a) * self.names.len() + self.site(b)]
    }

    /// The longest one-way delay of the matrix.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.delays.iter().copied().max().unwrap_or_default()
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

fn row(
    line: usize,
    text: &str,
    names: &[String],
    expected: Option<&String>,
) -> Result<Vec<Duration>, TopologyError> {
    let mut cells = cells(text);
    let found = cells.next().unwrap_or_default();
    if expected.is_none_or(|expected| expected != found) {
        return Err(TopologyError::Order {
            line,
            found: found.to_owned(),
            expected: expected.cloned().unwrap_or_default(),
        });
    }
    let values: Vec<_> = cells.collect();
    if values.len() != names.len() {
        return Err(TopologyError::Width {
            line,
            found: values.len(),
            expected: names.len(),
        });
    }
    let one_way = values.iter().map(|value| match value.parse::<f64>() {
        Ok(rtt) if (0.0..=MAX_RTT_MS).contains(&rtt) => Ok(Duration::from_secs_f64(rtt / 2e3)),
        _ => Err(TopologyError::Value {
            line,
            value: (*value).to_owned(),
        }),
    });
    one_way.collect()
}

#[cfg(test)]
mod tests;
