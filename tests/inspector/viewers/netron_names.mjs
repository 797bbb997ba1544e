// SPDX-License-Identifier: Apache-2.0
// netron_names.mjs FOLDER MODEL: the names of nodes and values in the graphs that Netron's own loader, in FOLDER, makes
// of a model.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
const [folder, model] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(folder, `${name}.js`)).href);
const base = await load('base');
const view = await load('view');
const request = async (file, encoding, from) => {
  const data = await readFile(path.join(from ?? folder, file));
  return encoding ? data.toString(encoding) : new base.BinaryStream(new Uint8Array(data));
};
const host = {
  environment: () => null, require: (name) => load(name.replace('./', '')), request, event: () => {}, exception: (error) => { throw error; },
};
const context = {
  identifier: path.basename(model), entries: new Map(), container: null, host,
  stream: new base.BinaryStream(new Uint8Array(await readFile(model))),
  request, require: host.require, error: (error) => { throw error; },
};
const opened = await new view.ModelFactoryService(host).open(context);
const names = { node: new Set(), value: new Set() };
const walk = (graph) => {
  const add = (argument) => (argument.value ?? []).forEach((value) => value && names.value.add(value.name));
  for (const node of graph.nodes) {
    names.node.add(node.name);
    [...node.inputs, ...node.outputs].forEach(add);
    for (const attribute of node.attributes ?? []) {
      if (attribute.type === 'graph') walk(attribute.value);
    }
  }
  [...graph.inputs, ...graph.outputs].forEach(add);
};
(opened.modules ?? opened.graphs).forEach(walk);
console.log(JSON.stringify({ node: [...names.node], value: [...names.value] }));
