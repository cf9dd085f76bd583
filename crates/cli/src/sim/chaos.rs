//! `falconet sim chaos`: hours of trouble, and what must hold meanwhile.

use std::time::Instant;

use falconet_sim::chaos::{self, Outcome};
use falconet_sim::{Costs, WorldError};

use super::workers;
use crate::args::ChaosArgs;
use crate::cluster::grouped;
use crate::exit::Failure;
use crate::output::{remark, say};

/// Runs all seeds and says what became of each.
///
/// # Errors
/// Exit code 1 if something that must hold did not.
pub(super) fn chaos(args: &ChaosArgs) -> Result<(), Failure> {
    let costs = Costs::reference().map_err(|error| Failure::run(error.to_string()))?;
    let last = args.seed.checked_add(args.seeds);
    let last = last.ok_or_else(|| Failure::usage("--seed and --seeds together go past 2^64"))?;
    let seeds: Vec<_> = (args.seed..last).collect();
    say(format_args!(
        "{} nodes, {} virtual hours, seeds {} to {}\n",
        chaos::NODES,
        args.hours,
        args.seed,
        last - 1
    ));
    let outcomes = workers::run(&seeds, |_, seed| {
        let outcome = chaos::run(*seed, args.hours, costs.clone(), Instant::now());
        if let Ok(outcome) = &outcome {
            say(line(*seed, outcome));
        }
        outcome
    });
    verdict(args, &seeds, outcomes)
}

fn line(seed: u64, outcome: &Outcome) -> String {
    format!(
        "seed {seed}: {} faults, {} broadcasts, {} deliveries, {} of them demanded, {} violations; digest {}",
        outcome.faults,
        grouped(outcome.broadcasts),
        grouped(outcome.deliveries),
        grouped(outcome.demanded),
        outcome.violations.len(),
        outcome.fingerprint,
    )
}

fn verdict(
    args: &ChaosArgs,
    seeds: &[u64],
    outcomes: Vec<Result<Outcome, WorldError>>,
) -> Result<(), Failure> {
    let mut failed = 0;
    for (seed, outcome) in seeds.iter().zip(outcomes) {
        let outcome = outcome.map_err(|error| Failure::run(error.to_string()))?;
        if outcome.violations.is_empty() {
            continue;
        }
        failed += 1;
        outcome.violations.iter().for_each(remark);
        remark(format_args!(
            "again: falconet sim chaos --hours {} --seed {seed}",
            args.hours
        ));
    }
    if failed > 0 {
        return Err(Failure::run(format!(
            "{failed} of {} seeds broke what must hold",
            seeds.len()
        )));
    }
    Ok(())
}
