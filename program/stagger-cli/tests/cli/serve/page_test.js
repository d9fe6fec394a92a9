// Claims about the scripts of the page, evaluated in it. The value is the list of those that are false.
(async () => {
  const failures = [];
  const equal = (name, found, wanted) => {
    const [one, other] = [found, wanted].map((value) => JSON.stringify(value));
    if (one !== other) failures.push(`${name}: ${one} is not ${other}`);
  };

  const units = await import("/units.js");
  equal("lengths", [null, 0, 0.0123, 0.9999, 1.5, 71.14, 125, 7300].map(units.length), ["never", "0 s", "12.3 ms", "1 s", "1.5 s", "71.1 s", "2 min 5 s", "2.03 h"]);
  equal("ticks", [units.ticks(10, 3), units.ticks(0.7, 3), units.ticks(0, 3)], [[0, 5, 10], [0, 0.5, 1], [0, 1]]);
  equal("sizes", ["10k", "1_000", "500/s", "1.5s", "2m", "0s"].map(units.size), [10000, 1000, 500, 1.5, 120, 0]);
  equal("sizes of other forms", ["", "fast", "1m30s"].map((text) => Number.isNaN(units.size(text))), [true, true, true]);
  equal("nearest steps", ["0s", "4s", "1h"].map((text) => units.STEPS.spread[units.nearestStep(units.STEPS.spread, text)]), ["0s", "5s", "5m"]);
  equal("a given setting", units.withSetting("exponential base=1s spread=5s cap=9s", "spread", "10s"), "exponential base=1s spread=10s cap=9s");
  equal("a new setting", units.withSetting("socket.io", "spread", "10s"), "socket.io spread=10s");
  equal("a setting whose name ends alike", units.settingOf("linear min-spread=1s", "spread"), null);

  const address = await import("/address.js");
  const state = { a: "socket.io", b: "exponential base=1s jitter=±20% max-attempts=inf", settings: { clients: "10k", capacity: "500/s" }, seed: "7" };
  equal("an address", address.parse(address.format(state)), state);
  equal("a readable address", address.format(state).startsWith("?a=socket.io&b=exponential+base=1s+jitter="), true);
  equal("the default", address.parse(""), address.DEFAULTS);

  const { Cast, LOST, REFUSED, ACCEPTED, CONNECTED } = await import("/replay.js");
  const cast = new Cast([[[100], [200, 1200], [1300]], [[50], [150], []], [[0, 5000], [400, 5500], [600, 5600]]]);
  equal("kinds", [...cast.kinds], [LOST, REFUSED, ACCEPTED, CONNECTED, LOST, REFUSED, LOST, ACCEPTED, CONNECTED, LOST, ACCEPTED, CONNECTED]);
  const countsAt = (time) => {
    cast.moveTo(time);
    return cast.counts();
  };
  equal("before", countsAt(-1), { waiting: 0, connected: 3, refused: 0 });
  equal("all lost", countsAt(0.3), { waiting: 3, connected: 0, refused: 2 });
  equal("two back", countsAt(2), { waiting: 1, connected: 2, refused: 0 });
  equal("backwards", countsAt(0.7), { waiting: 2, connected: 1, refused: 2 });
  equal("a crash", countsAt(5.2), { waiting: 2, connected: 1, refused: 0 });
  equal("the end", [countsAt(99), cast.end()], [{ waiting: 1, connected: 2, refused: 0 }, 5.6]);
  equal("seats", [cast.seats[3], cast.seats[8], cast.seats[11]], [1, 0, 1]);

  const { rates, sums, powers } = await import("/curves.js");
  equal("rates keep the peak", rates([1, 9, 2, 0], 0.5, 2, 2), [[0.5, 18], [1.5, 4]]);
  equal("sums", sums([1, 2, 3], 1, 4, 9), [[0, 0], [1, 1], [2, 3], [3, 6], [4, 6]]);
  equal("powers", [powers(1), powers(1001)], [[1, 10], [1, 10, 100, 1000, 10000]]);

  const { bestOf } = await import("/panels.js");
  equal("best", [bestOf([1, 2], "lower"), bestOf([1, 2], "higher"), bestOf([null, 5], "lower"), bestOf([3, 3], "lower"), bestOf([1], "lower"), bestOf([1, 2], "neither")], [0, 1, 1, null, null, null]);

  const { Parser } = await import("/server.js");
  const seen = [];
  const parser = new Parser((name, data) => seen.push([name, data]));
  for (const piece of ["event: fig", "ures\ndata: {\"a\"", ":1}\n\n: keep\n\nevent: done\ndata: {}\n", "\nevent: cut\ndata: {"]) parser.push(piece);
  equal("events in pieces", seen, [["figures", { a: 1 }], ["done", {}]]);
  return failures;
})();
