use std::fs;

use serde_json::{Value, json};

use super::browser::Page;
use super::picture;
use super::server::Server;
use crate::support::{Files, see, stagger};

/// The page with a race that is soon over.
const SMALL: &str =
    "?a=socket.io&b=exponential+base=1s+spread=5s+max-attempts=inf&clients=500&capacity=100/s&down=2s&seed=3";

/// A race has been answered, and its playback has begun.
const SHOWN: &str = "document.querySelector('#shown').textContent && !document.body.hasAttribute('aria-busy')";

/// Width and height of a phone, of a laptop and of a large screen.
const SCREENS: [(u32, u32); 3] = [(390, 844), (1280, 900), (2560, 1440)];

/// The claims about the page. They share a browser, because its start takes longer than any of them.
const CLAIMS: [(&str, fn(&mut Page)); 7] = [
    ("the scripts of the page compute what they should", scripts_compute_what_they_should),
    ("a shared address shows its race, and every edit is in the address", edits_are_in_the_address),
    ("a wrong policy is named, and a finding is fixed by its button", findings_are_fixed_by_their_buttons),
    ("every export is saved", exports_are_saved),
    ("the page fits narrow and wide screens, and moves nothing if asked", fits_screens_and_moves_nothing_if_asked),
    ("the page looks as it did", looks_as_it_did),
    ("reports fit a phone, and what scrolls there takes the focus", reports_fit_a_phone),
];

#[test]
fn the_page_works_in_a_browser() {
    needs!("chromium");
    let server = Server::start();
    let address = format!("http://{}/{SMALL}", server.address);
    let mut page = Page::open(&address);
    for (claim, check) in CLAIMS {
        println!("{claim}");
        page.navigate(&address);
        page.until(SHOWN);
        check(&mut page);
        assert_eq!(page.console, Vec::<String>::new(), "{claim}");
    }
}

fn edits_are_in_the_address(page: &mut Page) {
    assert_eq!(page.eval("document.querySelector('#policy-a').value"), "socket.io");
    let answer = page.text("#answer");
    assert!(answer.starts_with("Policy A (socket.io) sends up to ") && answer.contains("Policy B ("), "{answer}");
    // Findings come from a request of their own.
    page.until("document.querySelector('.b .fix')");
    let table = page.text("#figures table");
    assert!(table.contains("peak in 1s") && table.contains("A: socket.io"), "{table}");
    assert_eq!(page.eval("document.querySelectorAll('#curves svg .line').length"), 7);
    // Dots are drawn, and counted.
    assert_eq!(page.eval("['waiting', 'connected'].reduce((sum, name) => sum + Number(document.querySelector(`.a .${name}`).textContent), 0)"), 500);

    page.fill("#policy-b", "exponential base=1s spread=8s max-attempts=inf");
    page.until("location.search.includes('spread=8s')");
    page.until(SHOWN);
    page.eval("document.querySelector('#spread-b ~ input').value = 3; document.querySelector('#spread-b ~ input').dispatchEvent(new Event('input'))");
    page.until(
        "location.search.includes('spread=5s') && document.querySelector('#command').textContent.includes('spread=5s')",
    );
    page.until(SHOWN);
}

fn findings_are_fixed_by_their_buttons(page: &mut Page) {
    page.fill("#policy-b", "exponential bsae=1s");
    page.until("!document.querySelector('#problem-b').hidden");
    let problem = page.text("#problem-b");
    assert!(problem.contains("did you mean `base`?"), "{problem}");
    assert_eq!(page.eval("document.querySelector('#policy-b').getAttribute('aria-invalid')"), "true");

    page.fill("#policy-b", "constant base=1s jitter=none max-attempts=inf");
    page.until("document.querySelector('.b .findings').innerText.includes('S001 no jitter')");
    page.click(".b .fix-all");
    page.until("document.querySelector('.b .findings').textContent === 'No findings.'");
    let fixed = page.eval("document.querySelector('#policy-b').value");
    assert!(fixed.as_str().is_some_and(|policy| policy.contains("spread=")), "{fixed}");
    page.click(".b .advise");
    page.until("document.querySelector('.b .advice').textContent.startsWith('The best of')");
    page.until(SHOWN);
    // The browser reports the status of the answers, also of one that came late; the page reports nothing.
    page.console.retain(|line| !line.contains("422 (Unprocessable"));
}

fn exports_are_saved(page: &mut Page) {
    let files = Files::new();
    let directory = files.path("saved");
    fs::create_dir(&directory).expect("a directory is created");
    page.call("Page.setDownloadBehavior", &json!({ "behavior": "allow", "downloadPath": directory }));
    for (format, name) in
        [("report", "storm.html"), ("json", "storm.json"), ("toml", "policy.toml"), ("test", "storm_test.rs")]
    {
        page.click(&format!("[data-format={format}]"));
        page.until(&format!("document.querySelector('#export-status').textContent === 'Saved {name}.'"));
        let begun = std::time::Instant::now();
        while fs::read(directory.join(name)).map_or(true, |content| content.is_empty()) {
            assert!(begun.elapsed() < crate::support::PATIENCE, "{name} was not saved");
            std::thread::sleep(core::time::Duration::from_millis(20));
        }
    }
    let document: Value =
        serde_json::from_slice(&fs::read(directory.join("storm.json")).expect("a file")).expect("JSON");
    assert_eq!(document["strategies"][0]["runs"][0]["seed"], 3);
}

fn fits_screens_and_moves_nothing_if_asked(page: &mut Page) {
    for (width, height) in SCREENS {
        for scheme in ["light", "dark"] {
            page.emulate(width, height, &[("prefers-color-scheme", scheme)]);
            let wide = page.eval("document.documentElement.scrollWidth <= document.documentElement.clientWidth");
            assert_eq!(wide, true, "{width} px, {scheme}");
        }
    }
    page.emulate(390, 844, &[("prefers-reduced-motion", "reduce")]);
    let address = page.eval("document.URL");
    page.navigate(address.as_str().expect("an address"));
    page.until(SHOWN);
    // No frames, and a moment at which the policies differ.
    assert_eq!(page.text("#play"), "Play");
    let [a, b] = ["a", "b"].map(|lane| page.text(&format!(".{lane} .connected")));
    assert_ne!(a, b);
    assert_eq!(page.eval("stagger.frames"), 0);
}

fn reports_fit_a_phone(page: &mut Page) {
    const UNREACHABLE: &str = "[...document.querySelectorAll('*')].filter((element) => \
        element.scrollWidth > element.clientWidth && getComputedStyle(element).overflowX === 'auto' && \
        element.tabIndex < 0).length";
    let files = Files::new();
    let report = files.path("report.html");
    page.emulate(390, 844, &[]);
    for arguments in [
        "advise --no-input --for far --clients 500 --capacity 300/s",
        "check socket.io --clients 500 --capacity 300/s",
        "simulate reconnect --clients 500 --capacity 300/s",
        "simulate outage --guards none,tokens",
        "simulate system @incident/slack-2022-02",
    ] {
        see(stagger(arguments.split(' ')).arg("--output").arg(&report));
        page.navigate(&format!("file://{}", report.display()));
        let fits = page.eval("document.documentElement.scrollWidth <= document.documentElement.clientWidth");
        assert_eq!(fits, true, "{arguments}");
        assert_eq!(page.eval(UNREACHABLE), 0, "{arguments}");
        // So that no command is judged by the report of the one before.
        fs::remove_file(&report).expect(arguments);
    }
}

fn looks_as_it_did(page: &mut Page) {
    for (width, height) in SCREENS {
        for scheme in ["light", "dark"] {
            // Without motion the page shows the middle of the race, which is the same every time.
            let preferences = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")];
            page.emulate(width, height, &preferences);
            let address = page.eval("document.URL");
            page.navigate(address.as_str().expect("an address"));
            page.until(SHOWN);
            page.until(
                "document.querySelector('.a .fix') && document.querySelectorAll('#curves svg .line').length === 7",
            );
            for (lane, connected) in [("a", 136), ("b", 144)] {
                page.until(&format!("document.querySelector('.{lane} .connected').textContent === '{connected}'"));
            }
            picture::compare(page, &format!("serve-{width}-{scheme}.png"));
        }
    }
}

fn scripts_compute_what_they_should(page: &mut Page) {
    let failures = page.eval(include_str!("page_test.js"));
    assert_eq!(failures, json!([]));
}
