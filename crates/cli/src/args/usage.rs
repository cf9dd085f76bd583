//! Turns what `clap` refuses into one line that names the flag, the value and what is allowed.

use std::error::Error;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::sim::NotSimulated;
use super::{Refusal, allowed};
use crate::exit::Failure;

/// How the command line behind `error` ends.
pub(super) fn refusal(error: &clap::Error) -> Refusal {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Refusal::Shown(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Refusal::NoCommand(error.render().to_string()),
        _ => Refusal::Wrong(Failure::usage(line(error))),
    }
}

fn line(error: &clap::Error) -> String {
    let flag = context(error, ContextKind::InvalidArg).map(flag_name);
    match (error.kind(), flag) {
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(flag)) => wrong_value(error, flag),
        (ErrorKind::TooManyValues, Some(flag)) => format!("{flag} takes no value"),
        (ErrorKind::UnknownArgument, Some(flag)) => unknown(error, flag),
        (ErrorKind::ArgumentConflict, Some(flag)) => conflict(error, flag),
        (ErrorKind::InvalidSubcommand, _) => {
            let name = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!(
                "command {} is not known; allowed: cluster, keygen, sim, help",
                Failure::shown(name)
            )
        }
        // Only reached for what the flags above cannot produce, and for text that is not UTF-8.
        _ => {
            let text = error.to_string();
            text.lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned()
        }
    }
}

fn wrong_value(error: &clap::Error, flag: &str) -> String {
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    let name = flag.trim_start_matches('-');
    let is_sim = error.source().is_some_and(|source| source.is::<NotSimulated>());
    let allowed = if is_sim {
        allowed::of_sim(name)
    } else {
        allowed::of(name)
    }
    .unwrap_or("see --help");
    if value.is_empty() {
        return format!("{flag} needs a value; allowed: {allowed}");
    }
    Failure::wrong_value(flag, value, allowed).to_string()
}

fn unknown(error: &clap::Error, flag: &str) -> String {
    let what = if flag.starts_with('-') { "flag" } else { "argument" };
    let hint = match context(error, ContextKind::SuggestedArg) {
        Some(known) => format!("did you mean {}?", flag_name(known)),
        None => "--help lists what is allowed".to_owned(),
    };
    format!("{what} {} is not known; {hint}", Failure::shown(flag))
}

fn conflict(error: &clap::Error, flag: &str) -> String {
    match context(error, ContextKind::PriorArg).map(flag_name) {
        Some(other) if other != flag => {
            format!("{flag} and {other} exclude each other; allowed: one of them")
        }
        _ => format!("{flag} is given twice; allowed: once"),
    }
}

/// `--nodes` of `--nodes <N>`.
fn flag_name(usage: &str) -> &str {
    usage.split([' ', '=']).next().unwrap_or(usage)
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}
