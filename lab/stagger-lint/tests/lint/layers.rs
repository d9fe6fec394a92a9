//! Configurations of several layers of one path, judged together.

use stagger_lint::config::{ConfigFile, check_layers};

use super::configs::{DOTNET, GRPC, NGINX, read, virtual_service};

#[test]
fn files_of_several_layers_are_judged_together() {
    let mesh =
        virtual_service("  - timeout: 8s\n    retries: {attempts: 2, perTryTimeout: 2s, retryOn: connect-failure}\n");
    let client = GRPC.replace("\"timeout\"", "\"waitForReady\": true,\n      \"timeout\"");
    let file = |name: &str, text: &str| ConfigFile::read(name, text, None).unwrap();
    let files = [file("mesh.yaml", &mesh), file("client.json", &client), file("nginx.conf", NGINX)];
    let found = check_layers(&files);
    let (at, layers) = &found[0];
    assert_eq!((*at, layers.finding().rule().code()), (0, "C002"));
    let facts = layers.finding().facts();
    assert_eq!(facts[0], "taken for layers of one path, from the users inward: edge, library, mesh");
    assert!(
        facts[1].starts_with("edge: nginx makes up to 3 attempts") && facts[1].ends_with("nginx.conf:8)"),
        "{facts:?}"
    );
    assert_eq!(facts.last().unwrap(), "a server that fails receives each call 36 times");

    // One layer alone has nothing to multiply with, and a layer that does not retry is none.
    assert_eq!(check_layers(&files[..1]), []);
    let off = file("off.yaml", &virtual_service("  - timeout: 8s\n    retries: {attempts: 0}\n"));
    assert_eq!(check_layers(&[off, files[1].clone()]), []);
}

#[test]
fn of_a_layer_the_call_with_the_most_attempts_counts() {
    let route =
        |attempts: u32| format!("  - timeout: 8s\n    retries: {{attempts: {attempts}, retryOn: connect-failure}}\n");
    for (first, second) in [(1, 4), (4, 1)] {
        let mesh = ConfigFile::read("mesh", virtual_service(&(route(first) + &route(second))), None).unwrap();
        let found = check_layers(&[mesh, read(GRPC)]);
        // Five attempts of the mesh, and four of the library.
        assert_eq!(found[0].1.finding().facts().last().unwrap(), "a server that fails receives each call 20 times");
    }
}

#[test]
fn an_outer_layer_that_gives_up_before_an_inner_one_is_found() {
    let mesh = |limit: &str| {
        let text = virtual_service(&format!(
            "  - timeout: {limit}\n    retries: {{attempts: 2, perTryTimeout: 2s, retryOn: connect-failure}}\n"
        ));
        ConfigFile::read("mesh.yaml", text, None).unwrap()
    };
    let client = ConfigFile::read("appsettings.json", DOTNET, None).unwrap();
    for (limit, is_found) in [("30s", false), ("12s", false)] {
        assert_eq!(codes_of(&[mesh(limit), client.clone()]).contains(&"C011"), is_found, "{limit}");
    }
    // The attempt of the client waits 10 s by default.
    let slow =
        virtual_service("  - timeout: 12s\n    retries: {attempts: 2, perTryTimeout: 6s, retryOn: connect-failure}\n");
    let slow = ConfigFile::read("mesh.yaml", slow, None).unwrap();
    assert_eq!(codes_of(&[slow, client.clone()]), ["C002", "C011"]);
    // As long as that is just in time.
    let equal =
        virtual_service("  - timeout: 10s\n    retries: {attempts: 2, perTryTimeout: 6s, retryOn: connect-failure}\n");
    assert_eq!(codes_of(&[ConfigFile::read("mesh.yaml", equal, None).unwrap(), client]), ["C002"]);
}

fn codes_of(files: &[ConfigFile]) -> Vec<&'static str> {
    check_layers(files).iter().map(|(_, found)| found.finding().rule().code()).collect()
}
