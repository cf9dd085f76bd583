//! Which initiations are worth a Diffie-Hellman; `docs/spec/session.md#admission`.
//!
//! Answers to our own dials never come here: they are told apart by their receiver index.

use crate::Discard;
use crate::config::Budgets;
use falconet_crypto::Now;
use falconet_handshake::{CookieJar, Initiation, LocalStatic, Mac1Checked};
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Budgets of initiations with and without a proven address, and the cookies that prove one.
pub(crate) struct Admission {
    cookies: CookieJar,
    without_cookie: Bucket,
    with_cookie: Bucket,
    replies: Bucket,
}

/// What becomes of an initiation.
pub(crate) enum Verdict {
    Admit,
    /// Ask it to come again with a cookie.
    Cookie,
    Refuse(Discard),
}

impl Admission {
    pub(crate) fn new(now: Now, budgets: Budgets, rng: &mut impl CryptoRng) -> Self {
        Self {
            cookies: CookieJar::new(now, rng),
            without_cookie: Bucket::new(now.instant, budgets.without_cookie),
            with_cookie: Bucket::new(now.instant, budgets.with_cookie),
            replies: Bucket::new(now.instant, budgets.cookie_replies),
        }
    }

    /// Spends from the budget of the initiation's class: one class cannot starve the other.
    pub(crate) fn judge(
        &mut self,
        now: Now,
        from: SocketAddr,
        initiation: &Mac1Checked<Initiation>,
        rng: &mut impl CryptoRng,
    ) -> Verdict {
        self.cookies.rotate(now, rng);
        if self.cookies.mac2_valid(initiation, from) {
            return match self.with_cookie.take(now.instant) {
                true => Verdict::Admit,
                false => Verdict::Refuse(Discard::BudgetSpent),
            };
        }
        if self.without_cookie.take(now.instant) {
            return Verdict::Admit;
        }
        match self.replies.take(now.instant) {
            true => Verdict::Cookie,
            false => Verdict::Refuse(Discard::BudgetSpent),
        }
    }

    pub(crate) fn reply(
        &self,
        local: &LocalStatic,
        initiation: &Mac1Checked<Initiation>,
        from: SocketAddr,
        rng: &mut impl CryptoRng,
    ) -> [u8; falconet_handshake::COOKIE_REPLY_LEN] {
        self.cookies.reply(local, initiation, from, rng)
    }
}

/// A token bucket that holds one second's worth, in units of a billionth of a token.
struct Bucket {
    per_second: u64,
    level: u64,
    at: Instant,
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    fn new(now: Instant, per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self {
            per_second,
            level: per_second * TOKEN,
            at: now,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.at).min(Duration::from_secs(1));
        self.at = self.at.max(now);
        let gained = elapsed.as_nanos() as u64 * self.per_second;
        self.level = (self.level + gained).min(self.per_second * TOKEN);
        let has_token = self.level >= TOKEN;
        if has_token {
            self.level -= TOKEN;
        }
        has_token
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // A test has to take its first reading of the clock from somewhere.
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate_and_no_more() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start, 300);
        let burst = (0..1000).filter(|_| bucket.take(start)).count();
        assert_eq!(burst, 300);
        let taken = (1..=10_000u64)
            .filter(|ms| bucket.take(start + Duration::from_millis(*ms)))
            .count();
        assert_eq!(taken, 3000);
        let idle = start + Duration::from_secs(3600);
        assert_eq!((0..1000).filter(|_| bucket.take(idle)).count(), 300);
    }
}
