//! What this thread has used of the machine.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::ClockId;

/// Processor time that `work` takes on this thread, in user space and in the kernel.
pub(crate) fn cpu(work: impl FnOnce()) -> Duration {
    let before = thread_time();
    work();
    thread_time() - before
}

/// Page faults of this thread so far that needed no disk.
pub(crate) fn page_faults() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel counts");
    usage.minor_page_faults().cast_unsigned()
}

fn thread_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().expect("a clock").into()
}
