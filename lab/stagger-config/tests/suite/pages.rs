//! The guide has the table of each reader.

use std::fs;
use std::path::Path;

/// The readers of each page.
const PAGES: [(&str, &[&str]); 16] = [
    ("systemd", &["systemd"]),
    ("compose", &["compose"]),
    ("envoy", &["envoy"]),
    ("istio", &["istio"]),
    ("kubernetes", &["kubernetes"]),
    ("haproxy", &["haproxy"]),
    ("nginx", &["nginx"]),
    ("linkerd", &["linkerd"]),
    ("dapr", &["dapr"]),
    ("ci", &["gitlab", "github"]),
    ("grpc", &["grpc"]),
    ("resilience4j", &["resilience4j", "spring_retry", "spring_gateway"]),
    ("dotnet", &["dotnet", "azure"]),
    ("gateway-api", &["gateway_api"]),
    ("step-functions", &["step_functions"]),
    ("aws", &["aws"]),
];

#[test]
fn the_page_of_a_format_has_the_table_of_its_reader() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = root.join("../../docs/guide/configs");
    for (page, readers) in PAGES {
        let page = fs::read_to_string(pages.join(format!("{page}.md"))).unwrap();
        for reader in readers {
            let source = fs::read_to_string(root.join(format!("src/formats/{reader}.rs"))).unwrap();
            let table: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
            let table: Vec<_> = table.into_iter().filter(|line| line.starts_with('|')).collect();
            assert!(table.len() > 2 && page.contains(&table.join("\n")), "{reader}: the page differs from its table");
        }
    }
}
