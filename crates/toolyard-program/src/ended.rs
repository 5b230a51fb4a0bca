//! How a program ended, as the result of its call.

use crate::{output::Kept, transient};
use toolyard_core::{OutputKind, ToolError, ToolOutput};

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It did something that ends a module, such as to divide by zero: what it was.
    Trap(String),
    /// It ran into this limit of its sandbox (SB-8).
    Limit(&'static str),
}

/// A program that has ended, with what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// Its standard output.
    pub output: Kept,
    /// The last lines of its standard error.
    pub errors: String,
}

impl Ended {
    /// The result of its call (SB-2): code 0 is success; [`TRY_AGAIN`](crate::TRY_AGAIN) with a document that says so is
    /// transient; another code is a failure with what the program printed; and a program that was ended by something
    /// else may have done anything.
    ///
    /// # Errors
    /// [`ToolError`], unless the program said itself that it succeeded or failed.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::OutputKind;
    /// use toolyard_program::{Ended, Exit, Kept};
    /// let ended = Ended { exit: Exit::Code(1), output: Kept::whole(""), errors: "no such file\n".to_owned() };
    /// let output = ended.result(OutputKind::Text).unwrap();
    /// assert!(!output.success);
    /// assert_eq!(output.to_text(), "exit code 1\nno such file\n");
    /// ```
    pub fn result(self, kind: OutputKind) -> Result<ToolOutput, ToolError> {
        match self.exit {
            Exit::Code(0) => self.output.read(kind),
            Exit::Code(code) => self.failed(code),
            Exit::Signal(_) | Exit::Trap(_) | Exit::Limit(_) => Err(self.into_error()),
        }
    }

    /// The program chose to fail.
    fn failed(self, code: i32) -> Result<ToolOutput, ToolError> {
        if code == transient::TRY_AGAIN
            && let Some(error) = transient::read(&self.output)
        {
            return Err(error);
        }
        let text = self.told(&format!("exit code {code}"));
        Ok(ToolOutput::failure(text).with_metadata("exit_code", code))
    }

    /// The program was ended by something other than itself: what it has done is unknown.
    fn into_error(self) -> ToolError {
        let message = match &self.exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("the program was killed by signal {signal}"),
            Exit::Trap(what) => format!("the program was ended by a trap: {what}"),
            Exit::Limit(limit) => format!("the program ran into its limit of {limit}"),
        };
        self.stopped(ToolError::execution(message).outcome_unknown())
    }

    /// The error of a program that was stopped for this reason, with what it had printed by then (SB-7).
    #[must_use]
    pub fn stopped(self, error: ToolError) -> ToolError {
        match self.printed() {
            printed if printed.is_empty() => error,
            printed => error.with_output(ToolOutput::text(printed)),
        }
    }

    /// A line about its end, and what it printed.
    fn told(&self, line: &str) -> String {
        match self.printed() {
            printed if printed.is_empty() => line.to_owned(),
            printed => format!("{line}\n{printed}"),
        }
    }

    /// What it printed, the errors after the output.
    fn printed(&self) -> String {
        let (output, errors) = (&self.output.text, &self.errors);
        match (output.is_empty(), errors.is_empty()) {
            (_, true) => output.clone(),
            (true, false) => errors.clone(),
            (false, false) => {
                let gap = if output.ends_with('\n') { "" } else { "\n" };
                format!("{output}{gap}[standard error]\n{errors}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_core::ToolErrorKind;

    fn ended(exit: Exit, output: &str, errors: &str) -> Ended {
        Ended { exit, output: Kept::whole(output), errors: errors.to_owned() }
    }

    /// SB-2: a failure is the program's own, with both of its outputs: linters print what they find and exit with 1.
    #[test]
    fn a_failure_has_what_was_printed() {
        let output = ended(Exit::Code(1), "a.py:1: unused", "2 files\n").result(OutputKind::Json).unwrap();
        assert!(!output.success);
        assert_eq!(output.to_text(), "exit code 1\na.py:1: unused\n[standard error]\n2 files\n");
        assert_eq!(output.metadata("exit_code"), Some(&1.into()));
        assert_eq!(ended(Exit::Code(2), "", "").result(OutputKind::Text).unwrap().to_text(), "exit code 2");
    }

    /// SB-2: 75 is transient if its document says so, and a failure like any other if not.
    #[test]
    fn seventy_five_needs_its_document() {
        let told = r#"{"error":{"code":"busy","message":"locked"}}"#;
        let error = ended(Exit::Code(75), told, "").result(OutputKind::Text).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ToolErrorKind::Transient, "busy: locked"));
        let output = ended(Exit::Code(75), "locked", "").result(OutputKind::Text).unwrap();
        assert_eq!(output.to_text(), "exit code 75\nlocked");
        let output = ended(Exit::Code(74), told, "").result(OutputKind::Text).unwrap();
        assert!(!output.success);
    }

    /// SB-2, SB-8: what ended it from outside leaves its effect unknown, and has what it printed.
    #[test]
    fn an_end_from_outside_leaves_the_effect_unknown() {
        for (exit, message) in [
            (Exit::Signal(9), "the program was killed by signal 9"),
            (
                Exit::Trap("integer divide by zero".into()),
                "the program was ended by a trap: integer divide by zero",
            ),
            (Exit::Limit("memory"), "the program ran into its limit of memory"),
        ] {
            let error = ended(exit, "so far\n", "").result(OutputKind::Json).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ToolErrorKind::Execution, message));
            assert!(error.has_unknown_outcome());
            assert_eq!(error.output().unwrap().to_text(), "so far\n");
        }
    }
}
