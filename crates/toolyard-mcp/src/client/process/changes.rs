//! Keeps a server's tools up to date as its list changes.

use super::start::Starter;
use crate::client::{
    questions::Handler,
    tools::{Connection, Definitions, Roster, definition, listing},
};
use rmcp::{Peer, RoleClient, model::SubscriptionFilter, service::Subscription};
use std::{convert::Infallible, time::Duration};
use tokio::time::{sleep, timeout};

/// How long a changed list is left alone, so that many changes are read at once.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// How long a server may take to accept a subscription to changes.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before subscribing again after a subscription has ended.
const RESUBSCRIBE_AFTER: Duration = Duration::from_secs(30);

/// Makes these definitions the server's tools, and logs the newly refused ones.
pub(crate) fn apply(starter: &Starter, roster: &Roster, mut definitions: Definitions) {
    let Starter { config, shared, .. } = starter;
    roster.sync(&mut definitions);
    let known = shared.definitions().refused;
    for refused in definitions.refused.iter().filter(|refused| !known.contains(refused)) {
        let (server, tool, why) = (config.name(), &refused.tool, &refused.why);
        tracing::warn!(server, tool, why, "a tool of an MCP server was refused");
    }
    shared.define(definitions);
}

/// Updates the tools whenever they change.
///
/// # Cancel safety
/// Dropping the future leaves the tools as they are.
pub(crate) async fn follow(
    starter: &Starter,
    roster: &Roster,
    connection: &Connection,
    handler: Handler,
) -> Infallible {
    let mut changes = Changes::of(connection, handler).await;
    loop {
        changes.next().await;
        relist(starter, roster, connection).await;
    }
}

/// Takes over the tools as listed now. If the list cannot be read, nothing changes.
async fn relist(starter: &Starter, roster: &Roster, connection: &Connection) {
    let Starter { config, pins, shared, .. } = starter;
    let listed = async {
        sleep(SETTLE_TIME).await;
        listing::all(connection.peer()).await
    };
    match timeout(config.startup_timeout, listed).await {
        Ok(Ok(listed)) => apply(starter, roster, definition::define(listed, config, pins, shared)),
        Ok(Err(error)) => {
            tracing::warn!(server = config.name(), %error, "listing its tools failed: the tools are unchanged")
        }
        Err(_) => {
            tracing::warn!(server = config.name(), "listing its tools timed out: the tools are unchanged")
        }
    }
}

/// Waits for changes of the list, in either protocol.
struct Changes {
    handler: Handler,
    peer: Peer<RoleClient>,
    subscription: Option<Subscription>,
    /// Whether a subscription has worked before, and so is tried again.
    was_subscribed: bool,
}

impl Changes {
    async fn of(connection: &Connection, handler: Handler) -> Self {
        let is_newer = connection.info().is_some_and(|info| !info.protocol_version.has_initialize());
        let peer = connection.peer().clone();
        let subscription = if is_newer { listen(&peer).await } else { None };
        Self { handler, peer, was_subscribed: subscription.is_some(), subscription }
    }

    /// Waits until the list may have changed.
    async fn next(&mut self) {
        let changed = self.handler.changed.notified();
        match &mut self.subscription {
            Some(subscription) => tokio::select! {
                () = changed => {}
                note = subscription.next() => {
                    if !matches!(note, Ok(Some(_))) {
                        self.subscription = None;
                    }
                }
            },
            // Changes without a subscription go unreported, so this returns after subscribing again.
            None if self.was_subscribed => tokio::select! {
                () = changed => {}
                () = sleep(RESUBSCRIBE_AFTER) => self.subscription = listen(&self.peer).await,
            },
            None => changed.await,
        }
    }
}

async fn listen(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(LISTEN_TIMEOUT, peer.listen(filter)).await.ok()?.ok()
}
