//! What the machine says of threads, processors and memory; Linux only.

use std::time::Duration;

/// Pins the calling thread.
pub fn pin(processor: usize) {
    let mut set = nix::sched::CpuSet::new();
    set.set(processor).expect("a processor of this machine");
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("two processors");
}

/// Time that the thread of this name has had a processor.
pub fn processor_time(thread: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let of_task = |task: std::path::PathBuf| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let nanoseconds = times.split_whitespace().next()?.parse().ok()?;
        (name.trim() == thread).then_some(Duration::from_nanos(nanoseconds))
    };
    tasks.flatten().filter_map(|task| of_task(task.path())).sum()
}

/// Time that the calling thread has had a processor, to the nanosecond.
pub fn thread_time() -> Duration {
    nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID
        .now()
        .expect("every thread has this clock")
        .into()
}

/// Time that a processor has spent in the kernel, interrupts included, since the machine was started.
pub fn kernel_time(processor: usize) -> Duration {
    let statistics = std::fs::read_to_string("/proc/stat").expect("Linux");
    let name = format!("cpu{processor} ");
    let line = statistics.lines().find(|line| line.starts_with(&name));
    let fields = line
        .expect("a processor of this machine")
        .split_whitespace()
        .skip(1);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    // user, nice, system, idle, iowait, irq, softirq; a tick is 10 ms.
    let kernel = ticks[2] + ticks[5] + ticks[6];
    Duration::from_millis(10 * kernel)
}

/// Bytes of this process that are in memory.
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.expect("a process has memory") * 1024
}

/// The value below which `share` of the sorted `values` lie.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values
        .get((last as f64 * share) as usize)
        .copied()
        .unwrap_or(f64::NAN)
}
