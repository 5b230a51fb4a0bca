//! The forms of a tool, and where a grant lets a call run.

use super::{Grant, ResourceLimits, Sandbox};
use std::fmt;

/// What a tool is made of, which decides where its calls can execute (SM-1).
///
/// ```text
///   native  ─► host                        a handler in this program
///   command ─► process, landlock,          a program that is started
///              host, micro_vm
///   wasm    ─► wasm                        a module
///   http    ─► remote                      an address
/// ```
///
/// The first is where a tool of this form runs if the policy does not say where.
///
/// # Examples
/// ```
/// use toolyard_core::{Form, Sandbox};
/// assert_eq!(Form::Command.own_sandbox(), Sandbox::Process);
/// assert!(Form::Command.runs_in(Sandbox::Host));
/// assert!(!Form::Native.runs_in(Sandbox::Wasm));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A handler in this program.
    Native,
    /// A program that is started for each call.
    Command,
    /// A WebAssembly module.
    Wasm,
    /// A service that is called over HTTP.
    Http,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::Native, Self::Command, Self::Wasm, Self::Http];

    /// Where a tool of this form can run; its own place first.
    pub const fn sandboxes(self) -> &'static [Sandbox] {
        match self {
            Self::Native => &[Sandbox::Host],
            Self::Command => &[Sandbox::Process, Sandbox::Landlock, Sandbox::Host, Sandbox::MicroVm],
            Self::Wasm => &[Sandbox::Wasm],
            Self::Http => &[Sandbox::Remote],
        }
    }

    /// Where it runs if the policy does not say where.
    pub const fn own_sandbox(self) -> Sandbox {
        self.sandboxes()[0]
    }

    /// Whether it can run there.
    pub fn runs_in(self, sandbox: Sandbox) -> bool {
        self.sandboxes().contains(&sandbox)
    }

    /// Whether this is a program that would run there with all that this program may touch: the host, which confines
    /// nothing, for something that has a sandbox of its own.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Form, Sandbox};
    /// assert!(Form::Command.is_unconfined_in(Sandbox::Host));
    /// assert!(!Form::Native.is_unconfined_in(Sandbox::Host)); // a part of this program
    /// ```
    pub fn is_unconfined_in(self, sandbox: Sandbox) -> bool {
        sandbox == Sandbox::Host && self.own_sandbox() != Sandbox::Host && self.runs_in(sandbox)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Command => "command",
            Self::Wasm => "wasm",
            Self::Http => "http",
        }
    }
}

/// Where a call executes and within which limits: a [`Grant`] applied to a tool's forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Confinement {
    /// Where the call executes.
    pub sandbox: Sandbox,
    /// The resources it may use.
    pub limits: ResourceLimits,
}

impl Confinement {
    /// Execution in this process, without limits.
    pub const fn host() -> Self {
        Self { sandbox: Sandbox::Host, limits: ResourceLimits::unlimited() }
    }
}

/// A grant that no form of the tool matches. The call ends as `sandbox_error`, not started (SM-1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoForm {
    /// The sandbox that was granted.
    pub sandbox: Sandbox,
    /// The forms that the tool has.
    pub forms: Box<[Form]>,
}

impl std::error::Error for NoForm {}

impl fmt::Display for NoForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it cannot run in sandbox '{}'", self.sandbox.as_str())?;
        let mut places: Vec<&str> =
            self.forms.iter().flat_map(|form| form.sandboxes()).map(|sandbox| sandbox.as_str()).collect();
        places.dedup();
        if places.is_empty() { Ok(()) } else { write!(f, ", only in: {}", places.join(", ")) }
    }
}

impl Grant {
    /// Where a tool with these forms runs under this grant: in the sandbox that it names, or else in that of the
    /// tool's first form.
    ///
    /// # Errors
    /// [`NoForm`] if no form can run there, or there is none.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Form, Grant, Sandbox};
    /// let program = [Form::Command];
    /// assert_eq!(Grant::default().to_forms(&program).unwrap().sandbox, Sandbox::Process);
    /// assert_eq!(Grant::host().to_forms(&program).unwrap().sandbox, Sandbox::Host); // unconfined, and said so
    /// let error = Grant::within(Sandbox::Wasm).to_forms(&program).unwrap_err();
    /// let why = "it cannot run in sandbox 'wasm', only in: process, landlock, host, micro_vm";
    /// assert_eq!(error.to_string(), why);
    /// ```
    #[inline]
    pub fn to_forms(&self, forms: &[Form]) -> Result<Confinement, NoForm> {
        let own = || forms.first().map(|form| form.own_sandbox());
        match self.sandbox.or_else(own) {
            Some(sandbox) if forms.iter().any(|form| form.runs_in(sandbox)) => {
                Ok(Confinement { sandbox, limits: self.limits })
            }
            sandbox => Err(NoForm { sandbox: sandbox.unwrap_or_default(), forms: forms.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-1: a grant without a sandbox is the tool's own form, and any other needs a form that runs there.
    #[test]
    fn a_grant_needs_a_form_that_runs_there() {
        for form in Form::ALL {
            assert_eq!(Grant::default().to_forms(&[form]).unwrap().sandbox, form.own_sandbox());
            for sandbox in Sandbox::ALL {
                let confinement = Grant::within(sandbox).to_forms(&[form]);
                assert_eq!(
                    confinement.is_ok(),
                    form.sandboxes().contains(&sandbox),
                    "{form:?} in {sandbox:?}"
                );
                if let Ok(confinement) = confinement {
                    assert_eq!(confinement.sandbox, sandbox);
                }
            }
        }
    }

    /// SM-1: of several forms the first is the tool's own, and any may match.
    #[test]
    fn any_of_several_forms_may_match() {
        let forms = [Form::Native, Form::Command];
        assert_eq!(Grant::default().to_forms(&forms).unwrap().sandbox, Sandbox::Host);
        assert_eq!(Grant::within(Sandbox::MicroVm).to_forms(&forms).unwrap().sandbox, Sandbox::MicroVm);
        assert!(Grant::within(Sandbox::Remote).to_forms(&forms).is_err());
        assert!(Grant::default().to_forms(&[]).is_err());
    }

    /// SM-1: only a program on the host is unconfined.
    #[test]
    fn a_program_on_the_host_is_unconfined() {
        let unconfined: Vec<_> = Form::ALL
            .into_iter()
            .flat_map(|form| Sandbox::ALL.map(|sandbox| (form, sandbox)))
            .filter(|(form, sandbox)| form.is_unconfined_in(*sandbox))
            .collect();
        assert_eq!(unconfined, [(Form::Command, Sandbox::Host)]);
    }
}
