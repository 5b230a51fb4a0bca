//! Previews of what a call would change, shown with its approval request.

use crate::{
    tasks::{Blocking, Tasks},
    tool::ToolEntry,
};
use async_trait::async_trait;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use toolyard_core::{Placement, Preview, Resources};
use toolyard_redact::Redactor;

/// How long a preview may take.
const PREVIEW_WITHIN: Duration = Duration::from_secs(5);

/// The preview of one call.
pub(super) struct PreviewOf {
    pub(super) entry: Arc<ToolEntry>,
    pub(super) args: Arc<Value>,
    pub(super) resources: Arc<Resources>,
    pub(super) tasks: Tasks,
    pub(super) blocking: Arc<dyn Blocking>,
    pub(super) redactor: Option<Redactor>,
}

#[async_trait]
impl Preview for PreviewOf {
    async fn changes(&self) -> Option<String> {
        let (give, preview) = oneshot::channel();
        let (entry, args, resources) = (self.entry.clone(), self.args.clone(), self.resources.clone());
        let redactor = self.redactor.clone();
        let look = async move {
            let preview = entry.preview(&args, &resources, redactor.as_ref());
            let shown = |text: String| match &redactor {
                None => text,
                Some(redactor) => redactor.text(&text).into_owned(),
            };
            // The receiver may have stopped waiting.
            let _ = give.send(preview.map(shown));
        };
        match self.entry.spec().placement {
            Placement::Blocking => self.blocking.spawn_preview(Box::pin(look)),
            Placement::Task | Placement::Inline => self.tasks.spawn(look),
        }
        self.tasks.timeout(PREVIEW_WITHIN, preview).await?.ok()?
    }
}
