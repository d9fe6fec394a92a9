use crate::plot::palette::Hue;

/// The colors of everything but series, on a white and on a dark page: background, text, secondary text, rules.
const LIGHT: [&str; 4] = ["#ffffff", "#1c2128", "#59636e", "#d8dee4"];
const DARK: [&str; 4] = ["#0d1117", "#e6edf3", "#9198a1", "#2b323b"];

/// Returns the style sheet of every document: light, and dark if the reader prefers it.
///
/// Colors are literal, not custom properties: many SVG viewers do not support those.
pub fn sheet() -> String {
    let mut out = String::from(
        "\n.stagger text{font-family:system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif;font-size:12px}\n\
         .stagger .heading{font-size:14px;font-weight:600}\n\
         .stagger .code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace}\n\
         .stagger .line{fill:none;stroke-linejoin:round;stroke-linecap:butt}\n\
         .stagger .band{stroke:none;fill-opacity:.2}\n\
         .stagger .bar{stroke:none;fill-opacity:.85}\n\
         .stagger .rule{stroke-width:1}\n",
    );
    out.push_str(&colors(LIGHT, |hue| hue.on_light));
    out.push_str(&format!("@media (prefers-color-scheme:dark){{\n{}}}\n", colors(DARK, |hue| hue.on_dark)));
    out
}

fn colors([background, text, quiet, rule]: [&str; 4], of: fn(&Hue) -> &'static str) -> String {
    let mut out = format!(
        ".stagger .background{{fill:{background}}}\n.stagger text{{fill:{text}}}\n\
         .stagger text.quiet{{fill:{quiet}}}\n.stagger .rule{{stroke:{rule}}}\n\
         .stagger .axis{{stroke:{quiet}}}\n"
    );
    for hue in Hue::ALL {
        let (class, color) = (hue.class, of(&hue));
        out.push_str(&format!(".stagger .{class}{{stroke:{color};fill:{color}}}\n"));
    }
    // After the hues, to override their fill and stroke.
    out.push_str(".stagger .line{fill:none}\n.stagger .band,.stagger .bar{stroke:none}\n");
    out
}
