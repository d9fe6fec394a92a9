// Searches a built book as its page does, without a browser: node search.js DIRECTORY QUERY...
// Prints a line for each query: the pages of its first three results.
const fs = require('fs');
const path = require('path');

const [directory, ...queries] = process.argv.slice(2);
const named = (start) => path.join(directory, fs.readdirSync(directory).find((name) => name.startsWith(start) && name.endsWith('.js')));
const elasticlunr = require(named('elasticlunr'));
globalThis.window = { search: {} };
require(named('searchindex'));
const { index, doc_urls, search_options } = globalThis.window.search;
const loaded = elasticlunr.Index.load(index);
for (const query of queries) {
  const results = loaded.search(query, search_options).slice(0, 3);
  console.log(results.map((result) => doc_urls[result.ref]).join(' '));
}
