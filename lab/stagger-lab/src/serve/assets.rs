use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// The media types of the page's files.
const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page, which is a part of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asset {
    pub(super) path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

/// All files of the page.
pub(super) const ASSETS: [Asset; 10] = [
    Asset { path: "/", media_type: HTML, text: include_str!("page/index.html") },
    Asset { path: "/style.css", media_type: STYLE, text: include_str!("page/style.css") },
    Asset { path: "/main.js", media_type: SCRIPT, text: include_str!("page/main.js") },
    Asset { path: "/address.js", media_type: SCRIPT, text: include_str!("page/address.js") },
    Asset { path: "/server.js", media_type: SCRIPT, text: include_str!("page/server.js") },
    Asset { path: "/replay.js", media_type: SCRIPT, text: include_str!("page/replay.js") },
    Asset { path: "/dots.js", media_type: SCRIPT, text: include_str!("page/dots.js") },
    Asset { path: "/curves.js", media_type: SCRIPT, text: include_str!("page/curves.js") },
    Asset { path: "/units.js", media_type: SCRIPT, text: include_str!("page/units.js") },
    Asset { path: "/panels.js", media_type: SCRIPT, text: include_str!("page/panels.js") },
];

impl IntoResponse for Asset {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, self.media_type)], self.text).into_response()
    }
}
