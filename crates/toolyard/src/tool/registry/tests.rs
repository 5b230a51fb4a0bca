use super::*;
use toolyard_core::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn};

struct Nothing;

#[async_trait]
impl Tool for Nothing {
    async fn execute(&self, _: &serde_json::Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(().into())
    }
}

fn tool(spec: ToolSpec) -> impl ToolFactory {
    from_fn(spec, || Nothing)
}

/// CL-8: duplicate names are an error.
#[test]
fn a_name_is_taken_once() {
    let registry = Registry::default();
    registry.register(tool(ToolSpec::read("a"))).unwrap();
    let error = registry.register(tool(ToolSpec::write("a"))).unwrap_err();
    assert_eq!(error, RegisterError::Duplicate { name: "a".into() });
    assert_eq!(registry.get("a").unwrap().spec().side_effects, SideEffects::Read);
}

#[test]
fn replace_needs_something_to_replace() {
    let registry = Registry::default();
    let error = registry.replace(tool(ToolSpec::read("a"))).unwrap_err();
    assert_eq!(error, RegisterError::Missing { name: "a".into() });
    registry.register(tool(ToolSpec::read("a"))).unwrap();
    let old = registry.get("a").unwrap();
    registry.replace(tool(ToolSpec::write("a"))).unwrap();
    assert!(!Arc::ptr_eq(&old, &registry.get("a").unwrap()));
    assert!(!old.is_retired(), "calls in flight finish on the old one");
}

/// CL-8: when a name is removed, waiting calls must not start, whichever tool of that name they wait for.
#[test]
fn a_tool_that_was_replaced_goes_with_its_name() {
    let registry = Registry::default();
    registry.register(tool(ToolSpec::read("a"))).unwrap();
    let first = registry.get("a").unwrap();
    registry.replace(tool(ToolSpec::read("a"))).unwrap();
    let second = registry.get("a").unwrap();
    assert!(!registry.rules.current().has(&first) && registry.rules.current().has(&second));
    assert!(registry.unregister("a"));
    assert!(first.is_retired() && second.is_retired());
    registry.register(tool(ToolSpec::read("a"))).unwrap();
    assert!(!registry.get("a").unwrap().is_retired(), "another tool, which only has the name");
}

/// CL-1, PO-3: the operator's settings for a name apply to any tool that has it.
#[test]
fn settings_outlive_the_tool_they_were_made_for() {
    let network = ToolConfig { side_effects: Some(SideEffects::Network), ..ToolConfig::default() };
    let registry = Registry::new(Arc::default(), [("a".to_owned(), network)].into(), Guards::default());
    let side_effects = || registry.get("a").unwrap().spec().side_effects;
    registry.register(tool(ToolSpec::read("a"))).unwrap();
    assert_eq!(side_effects(), SideEffects::Network);
    registry.replace(tool(ToolSpec::write("a"))).unwrap();
    assert_eq!(side_effects(), SideEffects::Network);
    assert!(registry.unregister("a"));
    registry.register(tool(ToolSpec::pure("a"))).unwrap();
    assert_eq!(side_effects(), SideEffects::Network);
}

#[test]
fn the_list_is_sorted() {
    let registry = Registry::default();
    for name in ["c", "a", "b"] {
        registry.register(tool(ToolSpec::read(name))).unwrap();
    }
    let names: Vec<_> = registry.list().iter().map(|entry| entry.name().to_owned()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_spec_without_sense_is_refused() {
    let registry = Registry::default();
    for name in ["", "a b", "a\n", "a\u{202e}b", "a\u{200b}b", &"x".repeat(129)] {
        assert!(matches!(registry.register(tool(ToolSpec::read(name))), Err(RegisterError::Name { .. })));
    }
    let never = ToolSpec::read("a").timeout(Duration::ZERO);
    assert!(matches!(registry.register(tool(never)), Err(RegisterError::Zero { field: "timeout", .. })));
}

/// CL-1: a class that the tool derives from the arguments counts; on a panic it is the declared class.
#[test]
fn a_tool_may_classify_by_its_arguments() {
    struct ByMode;
    impl ToolFactory for ByMode {
        fn spec(&self) -> ToolSpec {
            ToolSpec::write("by_mode")
        }
        fn create(&self) -> Arc<dyn Tool> {
            Arc::new(Nothing)
        }
        fn class_for(&self, args: &serde_json::Value) -> Option<ToolClass> {
            match args["mode"].as_str() {
                Some("look") => Some(ToolClass::Read),
                Some("panic") => panic!("told to"),
                _ => None,
            }
        }
    }
    let entry = ToolEntry::new(Arc::new(ByMode), ByMode.spec(), &Guards::default(), &[]).unwrap();
    let class = |mode: &str| entry.class_for(&serde_json::json!({"mode": mode}), None);
    assert_eq!(
        [class("look"), class("x"), class("panic")],
        [ToolClass::Read, ToolClass::Serial, ToolClass::Serial]
    );
}

use std::time::Duration;
use toolyard_core::{SideEffects, ToolClass};
