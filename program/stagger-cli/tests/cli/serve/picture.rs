//! Pictures of the page, compared with those of before.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::browser::Page;

/// The pictures are this much smaller than the page: its layout and its colors are compared, not its letters.
const SCALE: f64 = 0.25;

/// The width of a sample in the fonts with which the pictures were made, in pixels. Pages in other fonts have other
/// line breaks.
const SAMPLE_WIDTH: f64 = 1_232.0;

/// The largest mean difference of a channel, of 255, and the largest share of pixels that differ clearly.
const MOST: [f64; 2] = [0.5, 0.005];

/// Compares the whole page with the picture of this name. `STAGGER_BLESS=1 cargo test -p stagger-cli serve` takes it
/// anew.
pub(super) fn compare(page: &mut Page, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(name);
    let (now, is_blessed) = (taken(page), std::env::var_os("STAGGER_BLESS").is_some());
    let sample = sample_width(page);
    if is_blessed {
        println!("the sample is {sample} px wide");
        fs::write(&path, decoded(page, &now)).expect("the picture is written");
        return;
    }
    if (sample - SAMPLE_WIDTH).abs() > 1.0 {
        println!("{name}: not compared, because the page has other fonts here: {sample} px");
        return;
    }
    let before = fs::read(&path).expect("a picture: run with STAGGER_BLESS=1");
    let differences = differences(page, &before, &now);
    println!("{name}: {differences:?}");
    for (difference, most) in differences.into_iter().zip(MOST) {
        if difference > most {
            let beside = path.with_extension("now.png");
            fs::write(&beside, decoded(page, &now)).expect("the picture is written");
            panic!(
                "{name} differs from the page by {differences:?}, of at most {MOST:?}; look at {}",
                beside.display()
            );
        }
    }
}

/// Returns a picture of the whole page in base 64.
fn taken(page: &mut Page) -> String {
    let size = page.call("Page.getLayoutMetrics", &json!({}))["cssContentSize"].clone();
    let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": SCALE });
    let shot = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
    page.call("Page.captureScreenshot", &shot)["data"].as_str().expect("a picture").to_owned()
}

fn sample_width(page: &mut Page) -> f64 {
    let width = page.eval(
        "(() => { const context = document.createElement('canvas').getContext('2d'); \
         context.font = `100px ${getComputedStyle(document.body).fontFamily}`; \
         return context.measureText('Retries do not stampede').width; })()",
    );
    width.as_f64().expect("a width")
}

/// Returns the mean difference of a channel, and the share of pixels that differ clearly; pictures of different sizes
/// differ in everything.
fn differences(page: &mut Page, before: &[u8], now: &str) -> [f64; 2] {
    let script = format!(
        "(async () => {{
            const pixels = async (data) => {{
                const image = new Image();
                image.src = 'data:image/png;base64,' + data;
                await image.decode();
                const canvas = Object.assign(document.createElement('canvas'), {{ width: image.width, height: image.height }});
                const context = canvas.getContext('2d');
                context.drawImage(image, 0, 0);
                return context.getImageData(0, 0, image.width, image.height);
            }};
            const before = btoa(Array.from({before:?}, (byte) => String.fromCharCode(byte)).join(''));
            const [a, b] = [await pixels(before), await pixels({now:?})];
            if (a.width !== b.width || Math.abs(a.height - b.height) > 1) return [255, 1];
            let [sum, clear] = [0, 0];
            const length = Math.min(a.data.length, b.data.length);
            for (let at = 0; at < length; at += 4) {{
                const apart = [0, 1, 2].map((channel) => Math.abs(a.data[at + channel] - b.data[at + channel]));
                sum += apart[0] + apart[1] + apart[2];
                clear += Math.max(...apart) > 64;
            }}
            return [sum / (length / 4 * 3), clear / (length / 4)];
        }})()"
    );
    let both = page.eval(&script);
    [0, 1].map(|at| both[at].as_f64().expect("a number"))
}

/// Returns the bytes of a picture in base 64.
fn decoded(page: &mut Page, text: &str) -> Vec<u8> {
    let bytes: Value = page.eval(&format!("Array.from(atob({text:?}), (letter) => letter.charCodeAt(0))"));
    bytes.as_array().expect("bytes").iter().map(|byte| byte.as_u64().expect("a byte") as u8).collect()
}
