//! What executes a machine's instructions.

use std::{fs, io};

/// What executes the instructions of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accel {
    /// QEMU itself, which needs nothing of the host, and takes some ten times as long.
    #[default]
    Tcg,
    /// The processor, through the kernel's KVM. Not tested: no machine that this was made on has it.
    Kvm,
}

/// Why KVM cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("KVM cannot be used: {why}; accel = \"tcg\", the default, needs nothing of the host")]
pub struct NoKvm {
    why: String,
}

impl Accel {
    /// Whether this machine has it. If it does not, no other is taken in its place: a machine that takes ten times as long
    /// would look like one that hangs, and its snapshot is another's.
    ///
    /// # Errors
    /// [`NoKvm`] when `/dev/kvm` cannot be opened, and when the processor says nothing of virtualization: there the device
    /// may exist all the same, and a kernel under it crawls.
    pub fn check(self) -> Result<(), NoKvm> {
        if self == Self::Tcg {
            return Ok(());
        }
        let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").map(drop);
        usable(opened, &fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }

    /// The model of the processor: all that it can do, since a snapshot stays on its host.
    pub(crate) const fn cpu(self) -> &'static str {
        match self {
            Self::Tcg => "max",
            Self::Kvm => "host",
        }
    }
}

/// Whether KVM can be used, by whether its device opened and by what the kernel says of the processor.
fn usable(opened: io::Result<()>, processor: &str) -> Result<(), NoKvm> {
    opened.map_err(|error| NoKvm { why: format!("/dev/kvm: {error}") })?;
    match processor.split_whitespace().any(|flag| flag == "vmx" || flag == "svm") {
        true => Ok(()),
        false => Err(NoKvm { why: "the processor has neither vmx nor svm".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-4: KVM is used where its device opens and the processor has what it needs; else it is an error that says what
    /// to do, and never TCG in its place.
    #[test]
    fn kvm_is_used_where_it_works() {
        for flags in ["flags\t\t: fpu vmx smx", "flags\t\t: fpu svm"] {
            assert_eq!(usable(Ok(()), flags), Ok(()), "{flags}");
        }
        let instead = "accel = \"tcg\", the default, needs nothing of the host";
        for flags in ["", "flags\t\t: fpu hypervisor svm_lock", "model name\t: vmxnet"] {
            let error = usable(Ok(()), flags).unwrap_err().to_string();
            let why = "KVM cannot be used: the processor has neither vmx nor svm";
            assert_eq!(error, format!("{why}; {instead}"), "{flags}");
        }
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            let error = usable(Err(kind.into()), "flags\t\t: vmx").unwrap_err().to_string();
            let starts = error.starts_with("KVM cannot be used: /dev/kvm: ");
            assert!(starts && error.ends_with(instead), "{error}");
        }
        assert_eq!(Accel::Tcg.check(), Ok(()));
    }
}
