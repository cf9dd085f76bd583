//! Flags that choose one of a few words.

use std::fmt;

use super::quantity::NotAllowed;
use crate::cluster::Lane;

/// Which lanes a run measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Every datagram authenticated.
    Auth,
    /// None authenticated.
    Plain,
    /// The authenticated lane, then the plain one, each in a cluster of its own.
    Both,
    /// Every second node speaks only plain.
    Mixed,
}

impl Lanes {
    /// The runs to make, in this order.
    pub(crate) fn runs(self) -> &'static [Lane] {
        match self {
            Self::Auth => &[Lane::Auth],
            Self::Plain => &[Lane::Plain],
            Self::Both => &[Lane::Auth, Lane::Plain],
            Self::Mixed => &[Lane::Mixed],
        }
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auth => "auth",
            Self::Plain => "plain",
            Self::Both => "both",
            Self::Mixed => "mixed",
        })
    }
}

/// Which cipher suite the authenticated lane uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuiteChoice {
    /// ChaCha20-Poly1305, WireGuard's own.
    ChaCha,
    /// AES-256-GCM.
    Aes,
}

impl fmt::Display for SuiteChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChaCha => "chacha",
            Self::Aes => "aes",
        })
    }
}

pub(super) fn lanes(text: &str) -> Result<Lanes, NotAllowed> {
    [Lanes::Auth, Lanes::Plain, Lanes::Both, Lanes::Mixed]
        .into_iter()
        .find(|lanes| lanes.to_string() == text)
        .ok_or(NotAllowed)
}

pub(super) fn suite(text: &str) -> Result<SuiteChoice, NotAllowed> {
    [SuiteChoice::ChaCha, SuiteChoice::Aes]
        .into_iter()
        .find(|suite| suite.to_string() == text)
        .ok_or(NotAllowed)
}
