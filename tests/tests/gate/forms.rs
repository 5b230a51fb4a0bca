//! SM-1: a grant is applied to the forms of a tool.

use super::message;
use serde_json::Value;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use toolyard::{
    Answer, ApprovalRequest, Approver, Backend, Call, ConfirmationMode, Confirmations, Effect, ErrorKind,
    Execution, Form, Grant, PolicyRules, RegisterError, ResourceLimits, Routing, Rule, Running, Sandbox,
    SandboxError, SideEffects, Stopped, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec,
    Work, async_trait,
};
use toolyard_tests::{call, kinds, yard};

/// A tool of these forms.
struct OfForms(&'static [Form]);

struct Portable;

#[async_trait]
impl Tool for Portable {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("it ran".into())
    }
}

impl ToolFactory for OfForms {
    fn spec(&self) -> ToolSpec {
        ToolSpec::execute("portable")
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(Portable)
    }

    fn forms(&self) -> &[Form] {
        self.0
    }
}

/// A back-end with every sandbox, which notes where it was told to run.
#[derive(Default)]
struct EverySandbox(Mutex<Vec<(Sandbox, ResourceLimits)>>);

impl Backend for EverySandbox {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let confinement = execution.confinement;
        self.0.lock().unwrap().push((confinement.sandbox, confinement.limits));
        Ok(Running {
            result: Work::Handler(execution.tool.execute(execution.args, &execution.cx)),
            stopped: Stopped::WhenDropped,
        })
    }
}

/// Counts the questions, and allows what is asked.
struct Asked(AtomicUsize);

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.0.fetch_add(1, Ordering::Relaxed);
        Answer::allow("ada")
    }
}

fn rules(grant: Grant) -> PolicyRules {
    PolicyRules::new(Rule::Allow(grant))
}

/// SM-1: without a sandbox in the grant a tool runs in its own form, otherwise where the grant says, and its limits
/// go with it.
#[tokio::test(start_paused = true)]
async fn a_grant_runs_a_tool_in_its_own_form_or_where_it_says() {
    let mut limits = ResourceLimits::unlimited();
    limits.memory = Some(1 << 20);
    let cases: [(&[Form], Grant, Sandbox); 6] = [
        (&[Form::Native], Grant::own_form(), Sandbox::Host),
        (&[Form::Command], Grant::own_form(), Sandbox::Process),
        (&[Form::Command], Grant::host(), Sandbox::Host),
        (&[Form::Http], Grant { limits, ..Grant::default() }, Sandbox::Remote),
        (&[Form::Wasm, Form::Command], Grant::within(Sandbox::MicroVm), Sandbox::MicroVm),
        (&[Form::Wasm, Form::Command], Grant { limits, ..Grant::own_form() }, Sandbox::Wasm),
    ];
    for (forms, grant, expected) in cases {
        let backend = Arc::new(EverySandbox::default());
        let yard =
            yard(|builder, _| builder.tool(OfForms(forms)).policy(rules(grant)).backend(backend.clone()))
                .await;
        let outcomes = yard.engine.session("s").dispatch(vec![Call::new("p", "portable", "{}")]).await;
        assert_eq!((outcomes[0].to_text().as_str(), outcomes[0].sandbox), ("it ran", expected));
        assert_eq!(*backend.0.lock().unwrap(), [(expected, grant.limits)]);
        yard.events.check();
    }
}

/// SM-1: a grant that no form matches is `sandbox_error` at the gate, past the pools, and nobody is asked about it.
#[tokio::test(start_paused = true)]
async fn a_grant_without_a_form_is_refused_before_anybody_is_asked() {
    for sandbox in Sandbox::ALL.into_iter().filter(|sandbox| *sandbox != Sandbox::Host) {
        let approver = Arc::new(Asked(AtomicUsize::new(0)));
        let yard = yard(|builder, _| {
            let confirmations =
                Confirmations::default().side_effects(SideEffects::Read, ConfirmationMode::Prompt);
            builder
                .policy(rules(Grant::within(sandbox)))
                .confirmations(confirmations)
                .approver(approver.clone())
        })
        .await;
        let outcomes = yard.engine.session("s").dispatch(vec![call("r", "read", 0, "ok")]).await;
        assert_eq!(kinds(&outcomes), [Some(ErrorKind::SandboxError)]);
        let name = sandbox.as_str();
        let expected = format!(
            "The grant of tool 'read' cannot be kept: it cannot run in sandbox '{name}', only in: host. The call was \
             not run."
        );
        assert_eq!(message(&outcomes[0]), expected);
        assert_eq!((outcomes[0].attempts, outcomes[0].routing), (0, Routing::ShortCircuit));
        assert_eq!(outcomes[0].error().unwrap().effect, Effect::NotStarted);
        assert_eq!(yard.events.of_call("r"), ["tool.call.received", "tool.failed"]);
        assert_eq!((approver.0.load(Ordering::Relaxed), yard.log.started()), (0, Vec::<String>::new()));
        yard.events.check();
    }
}

/// SM-1, PO-1: a program never runs on the host because its sandbox is missing.
#[tokio::test(start_paused = true)]
async fn a_program_without_its_sandbox_does_not_run() {
    let yard = yard(|builder, _| builder.tool(OfForms(&[Form::Command]))).await;
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("p", "portable", "{}")]).await;
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::SandboxError)]);
    assert_eq!(message(&outcomes[0]), "sandbox 'process' is not available: the call was not run");
    assert_eq!((outcomes[0].attempts, outcomes[0].sandbox), (0, Sandbox::Process));
    yard.events.check();
}

/// SM-1, V1: a waiting call whose new grant no form matches ends without having started.
#[tokio::test(start_paused = true)]
async fn a_new_policy_without_a_form_ends_a_waiting_call() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch = vec![call("runs", "serial", 1000, "ok"), call("waits", "serial", 0, "ok")];
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        yard.engine.set_policy(rules(Grant::within(Sandbox::Wasm)));
    });
    assert_eq!(kinds(&outcomes), [None, Some(ErrorKind::SandboxError)]);
    assert_eq!(outcomes[1].error().unwrap().effect, Effect::NotStarted);
    assert_eq!(yard.log.started(), ["runs"]);
    yard.events.check();
}

/// SM-1: a tool needs a form.
#[tokio::test(start_paused = true)]
async fn a_tool_without_a_form_is_not_registered() {
    let yard = yard(|builder, _| builder).await;
    let refused = yard.engine.registry().register(OfForms(&[])).unwrap_err();
    assert_eq!(refused, RegisterError::NoForm { name: "portable".to_owned() });
    assert!(!yard.engine.registry().has("portable"));
}
