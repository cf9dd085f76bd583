//! One number for a whole run: two runs of one seed have the same.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::time::Time;

/// Takes in everything that happens, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunDigest(Sha256);

/// The digest of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl RunDigest {
    pub(crate) fn note(&mut self, at: Time, what: u8, numbers: [u64; 3]) {
        let mut bytes = [0; 33];
        bytes[0] = what;
        for (place, number) in
            bytes[1..]
                .chunks_exact_mut(8)
                .zip([at.nanos(), numbers[0], numbers[1], numbers[2]])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.0.update(bytes);
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.0.clone().finalize().into())
    }
}

impl Fingerprint {
    /// One for several runs, in order.
    #[must_use]
    pub fn of_all(runs: &[Self]) -> Self {
        let mut hash = Sha256::new();
        for run in runs {
            hash.update(run.0);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Half of it tells runs apart.
        self.0[..16].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
