use core::fmt;

use async_trait::async_trait;
use http::{Extensions, HeaderMap, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next};
use stagger::Retrier;

use super::course::Course;
use crate::client::{self, Head, Settings};

/// The middleware: see the [module](super).
pub struct Retry {
    settings: Settings<Request>,
}

impl Retry {
    /// As this retrier says: its policy, budget, breaker, rules and listeners. On tokio's timer.
    #[must_use]
    pub const fn new(retrier: Retrier) -> Self {
        Self { settings: Settings::new(retrier) }
    }

    fn common(mut self, change: impl FnOnce(&mut Settings<Request>)) -> Self {
        change(&mut self.settings);
        self
    }
}

client::steps!([] Retry, Request);

#[async_trait]
impl Middleware for Retry {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        Course::new(request, extensions, &self.settings).run(extensions, next).await
    }
}

impl Head for Request {
    fn method(&self) -> &Method {
        self.method()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("settings", &self.settings).finish()
    }
}
