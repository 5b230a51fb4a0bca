//! Derives what a tool may do from what its server says, if that is believed (CL-1).

use rmcp::model::ToolAnnotations;
use toolyard::SideEffects;

/// What a tool may do, and the reason for that class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) side_effects: SideEffects,
    /// The side effects by which approval is decided, if others.
    pub(crate) asked_as: Option<SideEffects>,
    pub(crate) idempotent: bool,
    pub(crate) why: &'static str,
}

/// The class of a tool. A missing hint means the worse case.
pub(crate) fn of(annotations: Option<&ToolAnnotations>, trusted: bool) -> Class {
    let class = |side_effects, idempotent, why| Class { side_effects, asked_as: None, idempotent, why };
    if !trusted {
        let why = "its server is not trusted, so it may do anything";
        return class(SideEffects::Execute, false, why);
    }
    let Some(hints) = annotations else {
        return class(SideEffects::Execute, false, "its trusted server declares no annotations for it");
    };
    if hints.read_only_hint == Some(true) {
        if hints.open_world_hint != Some(true) {
            return class(SideEffects::Read, true, "its trusted server declares it read-only");
        }
        let why = "its trusted server declares it read-only, in an open world: approval is as for network";
        let asked_as = Some(SideEffects::Network);
        return Class { asked_as, ..class(SideEffects::Read, true, why) };
    }
    let idempotent = hints.is_idempotent();
    if hints.open_world_hint == Some(false) {
        let why = match hints.is_destructive() {
            true => "its trusted server declares that it only changes local things",
            false => "its trusted server declares that it only adds local things",
        };
        return class(SideEffects::Write, idempotent, why);
    }
    class(SideEffects::Network, idempotent, "its trusted server declares it neither read-only nor local")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CL-1, PO-3: a tool that only reads is a read. Where its server writes that it reads in an open world, a person is
    /// asked as for the network: what it is told leaves the machine. A hint that is left out asks nobody.
    #[test]
    fn a_read_in_an_open_world_is_a_read_that_is_asked_about() {
        let reads = || ToolAnnotations::new().read_only(true);
        for (hints, asked_as) in [
            (reads(), None),
            (reads().open_world(false), None),
            (reads().open_world(true), Some(SideEffects::Network)),
        ] {
            let class = of(Some(&hints), true);
            assert_eq!((class.side_effects, class.asked_as), (SideEffects::Read, asked_as), "{hints:?}");
            assert_eq!(of(Some(&hints), false).side_effects, SideEffects::Execute);
        }
    }

    /// CL-1, PO-5: the hints of an untrusted server are ignored, and a missing hint means the worst.
    #[test]
    fn hints_count_only_when_the_server_is_trusted() {
        let reads = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
        assert_eq!(of(Some(&reads), false).side_effects, SideEffects::Execute);
        assert_eq!(of(None, true).side_effects, SideEffects::Execute);
        let class = of(Some(&reads), true);
        assert_eq!((class.side_effects, class.idempotent), (SideEffects::Read, true));
        let writes = ToolAnnotations::new().read_only(false).open_world(false).idempotent(true);
        let class = of(Some(&writes), true);
        assert_eq!((class.side_effects, class.idempotent), (SideEffects::Write, true));
        let open = ToolAnnotations::new().destructive(false);
        assert_eq!(of(Some(&open), true).side_effects, SideEffects::Network);
    }
}
