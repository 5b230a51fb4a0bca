//! Derives what a tool may do from what its server says, if that is believed (CL-1).

use rmcp::model::ToolAnnotations;
use toolyard::SideEffects;

/// What a tool may do, and the reason for that class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) side_effects: SideEffects,
    pub(super) idempotent: bool,
    pub(super) why: &'static str,
}

/// The class of a tool. A missing hint means the worse case.
pub(super) fn of(annotations: Option<&ToolAnnotations>, trusted: bool) -> Class {
    if !trusted {
        let why = "its server is not trusted, so it may do anything";
        return Class { side_effects: SideEffects::Execute, idempotent: false, why };
    }
    let Some(hints) = annotations else {
        let why = "its trusted server declares no annotations for it";
        return Class { side_effects: SideEffects::Execute, idempotent: false, why };
    };
    if hints.read_only_hint == Some(true) {
        let why = "its trusted server declares it read-only";
        return Class { side_effects: SideEffects::Read, idempotent: true, why };
    }
    let idempotent = hints.is_idempotent();
    if hints.open_world_hint == Some(false) {
        let why = match hints.is_destructive() {
            true => "its trusted server declares that it only changes local things",
            false => "its trusted server declares that it only adds local things",
        };
        return Class { side_effects: SideEffects::Write, idempotent, why };
    }
    let why = "its trusted server declares it neither read-only nor local";
    Class { side_effects: SideEffects::Network, idempotent, why }
}

#[cfg(test)]
mod tests {
    use super::*;

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
