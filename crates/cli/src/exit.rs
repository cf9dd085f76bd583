//! How the program ends: exit codes, and failures that are one line.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;

/// Why a command did not succeed, as one line for a person, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    line: String,
    code: u8,
}

impl Failure {
    /// The command was used wrongly: exit code 2.
    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            code: 2,
        }
    }

    /// A flag has a value that it does not allow: exit code 2.
    pub(crate) fn wrong_value(flag: &str, value: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        let value = value.to_string();
        Self::usage(format!(
            "{flag} {} is not allowed; allowed: {allowed}",
            Self::shown(&value)
        ))
    }

    /// The command was right, but what it did failed: exit code 1.
    pub(crate) fn run(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            code: 1,
        }
    }

    /// The user stopped the command (SIGINT): exit code 130, as shells expect.
    pub(crate) fn interrupted(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            code: 130,
        }
    }

    /// The exit code of the process.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// A user's `text` as it appears inside a line: quoted if blanks or control characters would blur it,
    /// and cut if it is very long.
    pub(crate) fn shown(text: &str) -> Cow<'_, str> {
        const LONGEST: usize = 200;
        if text.chars().count() > LONGEST {
            let head: String = text.chars().take(LONGEST).collect();
            return Cow::Owned(format!("{head:?}..."));
        }
        if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Cow::Owned(format!("{text:?}"));
        }
        Cow::Borrowed(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file name or an error of the system may hold a line break; the promise is one line.
        for (index, part) in self.line.lines().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_the_user_wrote() {
        let failure = Failure::wrong_value("--nodes", "1\n2\u{1b}[31m", "a number");
        assert_eq!(
            failure.to_string(),
            r#"--nodes "1\n2\u{1b}[31m" is not allowed; allowed: a number"#
        );
        assert_eq!(Failure::run("a\nb").to_string(), "a b");
        assert!(
            Failure::wrong_value("--lanes", "x".repeat(100_000), "auth")
                .to_string()
                .len()
                < 300
        );
    }
}
