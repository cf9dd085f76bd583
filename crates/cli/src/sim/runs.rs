//! Runs every seed and lane, as many at once as there are cores.

use falconet_sim::Fingerprint;
use falconet_sim::latency::{self, Run};

use super::progress::Progress;
use super::settings::Settings;
use super::workers;
use crate::cluster::Lane;
use crate::exit::Failure;

/// All runs of one lane as one: the payloads of later seeds are numbered on.
#[derive(Debug)]
pub(crate) struct LaneRun {
    pub(crate) lane: Lane,
    pub(crate) run: Run,
}

/// The lanes in the order that was asked for.
///
/// # Errors
/// Exit code 2 if the description is no network.
pub(crate) fn run_all(settings: &Settings) -> Result<Vec<LaneRun>, Failure> {
    let jobs: Vec<_> = settings
        .lanes
        .iter()
        .flat_map(|lane| settings.seeds.clone().map(move |seed| (*lane, seed)))
        .collect();
    let progress = Progress::new(jobs.len());
    let done = workers::run(&jobs, |job, (lane, seed)| {
        latency::run(settings.world(*lane, *seed), settings.schedule, |share| {
            progress.set(job, share)
        })
    });
    progress.finish();
    let mut runs = done.into_iter();
    settings
        .lanes
        .iter()
        .map(|lane| {
            let seeds = (settings.seeds.end - settings.seeds.start) as usize;
            let runs: Result<Vec<_>, _> = runs.by_ref().take(seeds).collect();
            let runs = runs.map_err(|error| Failure::usage(error.to_string()))?;
            Ok(LaneRun {
                lane: *lane,
                run: joined(runs, settings.schedule.messages),
            })
        })
        .collect()
}

/// Runs of several seeds as one; there is at least one.
fn joined(runs: Vec<Run>, messages: u32) -> Run {
    let prints: Vec<_> = runs.iter().map(|run| run.fingerprint).collect();
    let count = runs.len() as u64;
    let mut all: Option<Run> = None;
    for (seed, mut run) in (0_u32..).zip(runs) {
        run.samples
            .iter_mut()
            .for_each(|sample| sample.message += seed * messages);
        let Some(all) = &mut all else {
            all = Some(run);
            continue;
        };
        all.samples.append(&mut run.samples);
        all.lost += run.lost;
        all.corrupt += run.corrupt;
        all.dropped += run.dropped;
        all.leader_bytes += run.leader_bytes;
        all.relay_bytes += run.relay_bytes;
        all.cpu += run.cpu;
    }
    let mut all = all.unwrap_or_else(|| unreachable!("a lane runs at least one seed"));
    all.leader_bytes /= count;
    all.relay_bytes /= count;
    all.cpu /= count as u32;
    if count > 1 {
        all.fingerprint = Fingerprint::of_all(&prints);
    }
    all
}
