//! Lists whose changes are announced over HTTP, in either protocol, by rmcp's own server.

use crate::web::yard::Yard;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, ServerNotification,
        SubscriptionFilter, Tool, ToolListChangedNotification,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::json;
use std::{
    borrow::Cow,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{net::TcpListener, sync::Notify};
use toolyard_mcp::ServerConfig as Config;

/// A server with one tool, which replaces itself with another.
#[derive(Debug, Clone, Default)]
struct Moody {
    is_newer: bool,
    is_changed: Arc<AtomicBool>,
    changed: Arc<Notify>,
}

impl ServerHandler for Moody {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.is_newer {
            true => Cow::Owned(vec![ProtocolVersion::LATEST]),
            false => Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE)),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let name = if self.is_changed.load(Ordering::Relaxed) { "new" } else { "change" };
        let schema = JsonObject::from_iter([("type".to_owned(), json!("object"))]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new(name, "", schema)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.is_changed.store(true, Ordering::Relaxed);
        self.changed.notify_one();
        if !self.is_newer {
            context.peer.notify_tool_list_changed().await.unwrap();
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("changed")]).into())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changed.notified().await;
        let changed = ToolListChangedNotification::default();
        context.sink().send(ServerNotification::ToolListChangedNotification(changed)).await.unwrap();
        context.cancelled().await;
        Ok(())
    }
}

async fn serve(moody: Moody) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(
        move || Ok(moody.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

/// CL-8: what a server over HTTP lists after a change is what the engine has.
#[tokio::test]
async fn a_changed_list_is_taken_over() {
    for is_newer in [false, true] {
        let url = serve(Moody { is_newer, ..Moody::default() }).await;
        let yard = Yard::open(vec![Config::http("s", url).trusted(true)]).await;
        assert_eq!(yard.names(), ["s__change"]);
        assert_eq!(yard.text("s__change", json!({})).await, "changed");
        yard.until("the new tool is there", |yard| yard.names() == ["s__new"]).await;
        yard.servers.shutdown().await;
    }
}
