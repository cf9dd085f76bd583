//! One lane from start to end: connect, then a broadcast each interval.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use falconet::{BroadcastReport, IdentityKey, Stats};
use tokio::time::{sleep_until, timeout_at};

use super::nodes::{Arrival, Cluster};
use super::plan::Lane;
use super::progress::Progress;
use super::rounds::RoundBook;
use super::settings::Settings;
use super::stop::Stop;
use crate::exit::Failure;

/// Relays of the last round are counted for at most this long after it.
const LONGEST_SETTLING: Duration = Duration::from_millis(500);

/// What a lane's run found.
#[derive(Debug)]
pub(crate) struct LaneRun {
    pub(crate) book: RoundBook,
    pub(crate) traffic: Traffic,
    /// Rounds that were closed.
    pub(crate) rounds: u64,
    /// Rounds that outlasted their interval.
    pub(crate) stretched: u64,
    pub(crate) sessions: usize,
    pub(crate) connected_after: Duration,
}

/// What was sent: sums over all broadcasts, and facts that are the same in each.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) broadcasts: u64,
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) cluster_datagrams: u64,
    pub(crate) cluster_bytes: u64,
    pub(crate) redundancy: f64,
    pub(crate) source_symbols: usize,
    pub(crate) symbol_bytes: usize,
    /// Of all nodes: what came and reached nobody, and what was to leave and did not, by reason.
    pub(crate) discards: BTreeMap<&'static str, u64>,
    pub(crate) drops: BTreeMap<&'static str, u64>,
}

impl Traffic {
    /// Bytes of one of the leader's datagrams that are not its symbol.
    pub(crate) fn overhead(&self) -> f64 {
        if self.datagrams == 0 {
            return 0.0;
        }
        self.bytes as f64 / self.datagrams as f64 - self.symbol_bytes as f64
    }

    fn add(&mut self, report: &BroadcastReport) {
        self.broadcasts += 1;
        self.datagrams += report.datagrams as u64;
        self.bytes += report.bytes as u64;
        self.dropped += report.dropped as u64;
        self.redundancy = report.redundancy;
        self.source_symbols = report.source_symbols;
        self.symbol_bytes = report.symbol_size;
    }

    fn add_cluster(&mut self, before: &[Stats], after: &[Stats]) {
        for (before, after) in before.iter().zip(after) {
            for lane in [|stats: &Stats| stats.authenticated, |stats: &Stats| stats.plain] {
                self.cluster_datagrams += lane(after).datagrams_sent - lane(before).datagrams_sent;
                self.cluster_bytes += lane(after).bytes_sent - lane(before).bytes_sent;
            }
            for (reason, count) in &after.discards {
                *self.discards.entry(reason).or_default() += count - before.discarded(reason);
            }
            for (reason, count) in &after.drops {
                *self.drops.entry(reason).or_default() += count - before.dropped(reason);
            }
        }
        self.discards.retain(|_, count| *count > 0);
        self.drops.retain(|_, count| *count > 0);
    }
}

impl LaneRun {
    fn new(nodes: usize, sessions: usize, connected_after: Duration) -> Self {
        let (book, traffic) = (RoundBook::new(nodes), Traffic::default());
        Self {
            book,
            traffic,
            rounds: 0,
            stretched: 0,
            sessions,
            connected_after,
        }
    }

    /// When the round after one that was due at `due` begins: an interval later, or now if that has passed.
    fn next_due(&mut self, due: Instant, interval: Duration) -> Instant {
        let (next, now) = (due + interval, Instant::now());
        if now > next {
            self.stretched += 1;
        }
        next.max(now)
    }

    fn handle_arrival(&mut self, Arrival { receiver, delivery }: Arrival, leader: IdentityKey) {
        if delivery.author == leader {
            self.book
                .handle_delivery(receiver, delivery.round, delivery.at, delivery.payload);
        } else {
            self.book.add_unexpected();
        }
    }
}

/// Runs all rounds on one lane in a new cluster, or as many as there are until `stop`.
///
/// # Errors
/// Exit code 1 if the cluster does not come up or the leader cannot broadcast, 130 if stopped before the
/// first round.
pub(crate) async fn run_lane(
    settings: &Settings,
    lane: Lane,
    progress: &Progress,
    stop: Stop,
) -> Result<LaneRun, Failure> {
    let mut cluster = Cluster::start(settings, lane).await?;
    let result = measure(settings, &mut cluster, progress, stop).await;
    cluster.shutdown().await;
    result
}

async fn measure(
    settings: &Settings,
    cluster: &mut Cluster,
    progress: &Progress,
    mut stop: Stop,
) -> Result<LaneRun, Failure> {
    let began = Instant::now();
    let sessions = tokio::select! {
        connected = cluster.connect() => connected?,
        () = stop.requested() => return Err(Failure::interrupted("interrupted before the first round")),
    };
    let mut run = LaneRun::new(settings.plan.len(), sessions, began.elapsed());
    progress.ready(sessions, run.connected_after);

    let before = cluster.stats();
    let mut due = Instant::now();
    for round in 1..=settings.rounds {
        tokio::select! {
            done = run_round(settings, cluster, &mut run, round, due) => done?,
            () = stop.requested() => {
                run.book.discard();
                break;
            }
        }
        progress.round(round, &run.book.close());
        run.rounds += 1;
        due = run.next_due(due, settings.interval);
    }
    settle(settings, cluster, &mut run).await;
    run.traffic.add_cluster(&before, &cluster.stats());
    Ok(run)
}

/// Broadcasts at `due`, then waits until every receiver has the payload or the drain limit is over.
async fn run_round(
    settings: &Settings,
    cluster: &mut Cluster,
    run: &mut LaneRun,
    round: u64,
    due: Instant,
) -> Result<(), Failure> {
    // Made before the clock runs.
    let (payload, digest) = settings.payload.payload(round);
    sleep_until(due.into()).await;

    let started = Instant::now();
    let limit = (started + settings.interval + settings.drain_limit()).into();
    run.book.open(round, started, digest);
    let report = timeout_at(limit, cluster.leader().broadcast(round, payload))
        .await
        .map_err(|_| Failure::run(format!("round {round}: the leader's datagrams do not leave")))?
        .map_err(|error| Failure::run(format!("round {round}: the leader cannot broadcast: {error}")))?;
    run.traffic.add(&report);

    let leader = cluster.leader().identity();
    while !run.book.is_complete() {
        match timeout_at(limit, cluster.arrival()).await {
            Ok(arrival) => run.handle_arrival(arrival, leader),
            Err(_) => break,
        }
    }
    Ok(())
}

/// Lets the relays of the last round leave, so that they are counted, and notes what still arrives.
async fn settle(settings: &Settings, cluster: &mut Cluster, run: &mut LaneRun) {
    let leader = cluster.leader().identity();
    let until = Instant::now() + settings.interval.min(LONGEST_SETTLING);
    while let Ok(arrival) = timeout_at(until.into(), cluster.arrival()).await {
        run.handle_arrival(arrival, leader);
    }
}
