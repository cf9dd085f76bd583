#![allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.

use super::*;
use crate::Discard;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

const NOTHING: Evidence = Evidence {
    mac2_valid: false,
    recorded: false,
    under_load: false,
};
const PROVED: Evidence = Evidence {
    mac2_valid: true,
    ..NOTHING
};
const RECORDED: Evidence = Evidence {
    recorded: true,
    ..PROVED
};

struct Rig {
    admission: Admission,
    now: Now,
    rng: ChaCha20Rng,
}

fn rig(options: AdmissionOptions) -> Rig {
    let now = Now {
        instant: Instant::now(),
        unix: Duration::ZERO,
    };
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    Rig {
        admission: options.build(now, &mut rng).unwrap(),
        now,
        rng,
    }
}

fn per_second(rate: u32) -> NonZeroU32 {
    NonZeroU32::new(rate).unwrap()
}

/// Source number `n`, each with an address of its own.
fn source(n: u32) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(0x0a00_0000 + n).into(), 4242)
}

impl Rig {
    fn admit(&mut self, from: SocketAddr, evidence: Evidence) -> Decision {
        self.admission.admit(self.now, from, evidence, &mut self.rng)
    }

    fn wait(&mut self, by: Duration) {
        self.now = self.now.after(by);
    }

    /// How many of `count` messages from distinct sources are admitted in `class`.
    fn admitted(&mut self, count: u32, evidence: Evidence, class: Class) -> u32 {
        (0..count)
            .filter(|&n| self.admit(source(n), evidence) == Decision::Admit(class))
            .count() as u32
    }
}

#[test]
fn strangers_past_their_budget_are_asked_for_a_cookie() {
    let mut rig = rig(AdmissionOptions::default());
    assert_eq!(rig.admitted(300, NOTHING, Class::Unproved), 300);
    assert_eq!(rig.admit(source(7), NOTHING), Decision::CookieReply);
    rig.wait(Duration::from_millis(10));
    assert_eq!(rig.admitted(100, NOTHING, Class::Unproved), 3);
}

#[test]
fn under_load_nobody_passes_without_a_cookie() {
    let mut rig = rig(AdmissionOptions::default());
    let loaded = Evidence {
        under_load: true,
        ..NOTHING
    };
    assert_eq!(rig.admit(source(1), loaded), Decision::CookieReply);
    let proved = Evidence {
        under_load: true,
        ..PROVED
    };
    assert_eq!(rig.admit(source(1), proved), Decision::Admit(Class::Proved));
    // The message that was asked for a cookie has spent nothing.
    assert_eq!(rig.admitted(300, NOTHING, Class::Unproved), 300);
}

#[test]
fn no_class_starves_another() {
    let mut rig = rig(AdmissionOptions::default());
    for _ in 0..50_000 {
        rig.admit(source(1), NOTHING);
    }
    assert_eq!(rig.admitted(1_000, PROVED, Class::Proved), 300);
    assert_eq!(
        rig.admit(source(2_000), PROVED),
        Decision::Drop(Refusal::ProvedBudget)
    );
    let recorded: u32 = (0..400)
        .map(|n| rig.admit(source(10_000 + n), RECORDED))
        .filter(|&decision| decision == Decision::Admit(Class::Recorded))
        .count() as u32;
    assert_eq!(recorded, 300);
}

/// `docs/spec/handshake.md#admission-threads`
#[test]
fn the_proved_budget_is_one_of_each_thread_and_no_other_is() {
    let mut rig = rig(AdmissionOptions::default().with_threads(per_second(3)));
    assert_eq!(rig.admitted(1_500, PROVED, Class::Proved), 900);
    assert_eq!(rig.admitted(1_500, NOTHING, Class::Unproved), 300);
    assert_eq!(rig.admitted(1_500, RECORDED, Class::Recorded), 300);
}

#[test]
fn recorded_addresses_share_the_proved_budget_after_their_own() {
    let mut rig = rig(AdmissionOptions::default());
    assert_eq!(rig.admitted(300, RECORDED, Class::Recorded), 300);
    assert_eq!(rig.admit(source(301), RECORDED), Decision::Admit(Class::Proved));
}

/// A recorded address that proved nothing may be spoofed: it must not spend what is reserved.
#[test]
fn a_spoofed_recorded_address_spends_nothing_of_the_reserve() {
    let mut rig = rig(AdmissionOptions::default());
    let spoofed = Evidence {
        recorded: true,
        ..NOTHING
    };
    for n in 0..10_000 {
        rig.admit(source(n % 100), spoofed);
    }
    assert_eq!(rig.admitted(300, RECORDED, Class::Recorded), 300);
}

#[test]
fn one_source_has_a_limit_and_its_neighbours_have_their_own() {
    let mut rig = rig(AdmissionOptions::default());
    for _ in 0..20 {
        assert_eq!(rig.admit(source(1), PROVED), Decision::Admit(Class::Proved));
    }
    assert_eq!(rig.admit(source(1), PROVED), Decision::Drop(Refusal::SourceLimit));
    let other_port = SocketAddr::new(source(1).ip(), 1);
    assert_eq!(
        rig.admit(other_port, PROVED),
        Decision::Drop(Refusal::SourceLimit)
    );
    assert_eq!(rig.admit(source(2), PROVED), Decision::Admit(Class::Proved));
    rig.wait(Duration::from_millis(50));
    assert_eq!(rig.admit(source(1), PROVED), Decision::Admit(Class::Proved));
}

#[test]
fn ipv6_is_limited_by_the_64_and_mapped_ipv4_by_the_address() {
    let v6 = |prefix: u16, host: u16| {
        SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0, prefix, 0, 0, 0, host).into(), 1)
    };
    let mut rig = rig(AdmissionOptions::default());
    for host in 0..20 {
        assert_eq!(rig.admit(v6(1, host), PROVED), Decision::Admit(Class::Proved));
    }
    assert_eq!(rig.admit(v6(1, 99), PROVED), Decision::Drop(Refusal::SourceLimit));
    assert_eq!(rig.admit(v6(2, 0), PROVED), Decision::Admit(Class::Proved));

    let mapped = |n: u8| SocketAddr::new(Ipv4Addr::new(192, 0, 2, n).to_ipv6_mapped().into(), 1);
    for _ in 0..20 {
        assert_eq!(rig.admit(mapped(1), PROVED), Decision::Admit(Class::Proved));
    }
    assert_eq!(rig.admit(mapped(1), PROVED), Decision::Drop(Refusal::SourceLimit));
    let plain = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 1);
    assert_eq!(rig.admit(plain, PROVED), Decision::Drop(Refusal::SourceLimit));
    assert_eq!(rig.admit(mapped(2), PROVED), Decision::Admit(Class::Proved));
}

#[test]
fn an_unproved_source_is_not_counted_against_its_owner() {
    let mut rig = rig(AdmissionOptions::default());
    for _ in 0..1_000 {
        rig.admit(source(1), NOTHING);
    }
    assert_eq!(rig.admission.sources.len(), 0);
    assert_eq!(rig.admit(source(1), PROVED), Decision::Admit(Class::Proved));
}

#[test]
fn the_table_of_sources_is_bounded_and_forgets_the_one_seen_longest_ago() {
    let options = AdmissionOptions::default()
        .with_sources(4)
        .with_per_source_per_second(per_second(1));
    let mut rig = rig(options);
    for n in 0..4 {
        rig.wait(Duration::from_millis(1));
        assert_eq!(rig.admit(source(n), PROVED), Decision::Admit(Class::Proved));
    }
    rig.wait(Duration::from_millis(1));
    assert_eq!(rig.admit(source(0), PROVED), Decision::Drop(Refusal::SourceLimit));
    rig.wait(Duration::from_millis(1));
    assert_eq!(rig.admit(source(4), PROVED), Decision::Admit(Class::Proved));
    assert_eq!(
        (rig.admission.sources.len(), rig.admission.evicted_sources()),
        (4, 1)
    );
    // Source 1 made room; source 0 was seen after it and is still limited.
    assert_eq!(rig.admit(source(0), PROVED), Decision::Drop(Refusal::SourceLimit));
    assert_eq!(rig.admit(source(1), PROVED), Decision::Admit(Class::Proved));

    for n in 0..20_000 {
        rig.admit(source(n), PROVED);
    }
    assert_eq!(rig.admission.sources.len(), 4);
}

/// 200,000 a second for two seconds, with an honest source that asks every 10 ms, each time after the
/// flood of that moment: it is answered about as often as anybody, one time in ten.
#[test]
fn cookie_replies_are_capped_and_drawn_by_lot() {
    let mut rig = rig(AdmissionOptions::default());
    let loaded = Evidence {
        under_load: true,
        ..NOTHING
    };
    let (mut replies, mut honest) = (0, 0);
    for _ in 0..2_000 {
        rig.wait(Duration::from_millis(1));
        replies += (0..200)
            .filter(|&n| rig.admit(source(n), loaded) == Decision::CookieReply)
            .count();
        honest += usize::from(rig.admit(source(5_000), loaded) == Decision::CookieReply);
    }
    assert!(
        replies + honest <= 42_000,
        "{replies} replies in 2 s, with a burst of 2,000"
    );
    assert!(
        replies > 36_000,
        "{replies} replies: the cap should nearly be used"
    );
    assert!(
        (120..280).contains(&honest),
        "{honest} of 2,000 honest messages answered"
    );
}

#[test]
fn recorded_addresses_have_their_own_share_of_replies() {
    let mut rig = rig(AdmissionOptions::default());
    let loaded = Evidence {
        under_load: true,
        ..NOTHING
    };
    for n in 0..100_000 {
        rig.admit(source(n), loaded);
    }
    let recorded = Evidence {
        recorded: true,
        ..loaded
    };
    let answered = (0..100)
        .filter(|&n| rig.admit(source(n), recorded) == Decision::CookieReply)
        .count();
    assert_eq!(answered, 100);
}

#[test]
fn a_calm_reply_budget_answers_everybody() {
    let mut rig = rig(AdmissionOptions::default().with_cookie_replies_per_second(per_second(1_000)));
    let loaded = Evidence {
        under_load: true,
        ..NOTHING
    };
    for n in 0..5_000 {
        rig.wait(Duration::from_micros(1_250));
        assert_eq!(rig.admit(source(n), loaded), Decision::CookieReply, "message {n}");
    }
}

#[test]
fn a_clock_that_goes_back_gives_nothing_away() {
    let mut rig = rig(AdmissionOptions::default());
    rig.wait(Duration::from_secs(10));
    assert_eq!(rig.admitted(300, NOTHING, Class::Unproved), 300);
    let later = rig.now;
    rig.now = Now {
        instant: later.instant - Duration::from_secs(5),
        ..later
    };
    assert_eq!(rig.admit(source(1), NOTHING), Decision::CookieReply);
}

#[test]
fn wrong_options_are_named() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let now = Now {
        instant: Instant::now(),
        unix: Duration::ZERO,
    };
    let greedy = AdmissionOptions::default().with_per_source_per_second(per_second(301));
    let error = greedy.build(now, &mut rng).unwrap_err().to_string();
    assert!(error.starts_with("per_source_per_second is 301"), "{error}");
    for sources in [0, 3, AdmissionOptions::MAX_SOURCES + 1] {
        let error = AdmissionOptions::default()
            .with_sources(sources)
            .build(now, &mut rng)
            .unwrap_err();
        assert_eq!(error, OptionsError::Sources { sources });
    }
}

/// What the docs of `with_sources` and `MAX_SOURCES` promise.
#[test]
fn a_source_takes_at_most_128_bytes() {
    const { assert!(SourceTable::ENTRY_BYTES <= 128) };
}

#[test]
fn labels_are_distinct_from_each_other_and_from_discards() {
    let refusals = Refusal::ALL.iter().map(|refusal| refusal.label());
    let labels: Vec<_> = refusals
        .chain(Discard::ALL.iter().map(|discard| discard.label()))
        .collect();
    let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
    assert_eq!(distinct.len(), labels.len());
}
