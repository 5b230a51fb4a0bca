//! What this confinement lacks beside that of namespaces.

/// The first version of landlock that this confinement is built on: with an older one a program could empty files of
/// others.
pub(super) const VERSION_LEAST: u32 = 3;

/// The version from which on landlock bounds signals.
const VERSION_OF_SIGNALS: u32 = 6;

/// What no version keeps.
const ALWAYS: [&str; 5] = [
    "permissions and times of files: it may change them of all files that its user owns, wherever they lie (no set-id bits)",
    "what a file is called and how large it is: it may ask this of every path that it knows (it lists and reads no others)",
    "other processes: it sees all of the machine's, with their arguments, and may change when its user's are run",
    "its temporary files: they lie on the disk, as large as that allows",
    "who it is: it is its user and sees the machine's name; root without its capabilities if root has started it",
];

/// What older versions do not keep.
const SIGNALS: &str = "signals: it may end all processes of its user, the one that would end it among them (needs version 6 of landlock, \
     Linux 6.12)";

/// What a program can do that is confined by [landlock alone](crate::Confinement::landlock_alone) and could not do in
/// namespaces, a line for each, with this [version](crate::landlock_version) of landlock.
///
/// # Errors
/// Why no program is confined so with it.
///
/// # Examples
/// ```
/// use toolyard_process::landlock_alone_lacks;
/// assert!(landlock_alone_lacks(2).is_err()); // Linux 6.1
/// let (old, new) = (landlock_alone_lacks(4).unwrap(), landlock_alone_lacks(6).unwrap());
/// assert!(old.len() > new.len());
/// ```
pub fn landlock_alone_lacks(version: u32) -> Result<Vec<&'static str>, String> {
    match version {
        0 => Err("the kernel has no landlock, or it is not enabled".to_owned()),
        1..VERSION_LEAST => Err(format!(
            "the kernel has landlock of version {version}, with which files of others can be emptied: it takes version \
             {VERSION_LEAST} (Linux 6.2)"
        )),
        _ => {
            let signals = (version < VERSION_OF_SIGNALS).then_some(SIGNALS);
            Ok(ALWAYS.into_iter().chain(signals).collect())
        }
    }
}
