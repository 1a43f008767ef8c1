// What a stack does at the moment.

export default {
  id: "now",
  title: "Now",
  mount(root, { el, live, table, fmt }) {
    const at = el("div", {});
    root.append(at);
    live((tick) => {
      if (tick.error) {
        at.replaceChildren(el("p", { class: "problem" }, tick.error));
        return;
      }
      const s = tick.status;
      at.replaceChildren(
        table(["Queue", { text: "Visible", number: true }, { text: "Held", number: true }, { text: "Delayed", number: true }],
          (s.queues || []).map((q) => [q.queue, fmt.number(q.visible), fmt.number(q.in_flight), fmt.number(q.delayed)]),
          { caption: "Queues" }));
    });
  },
};
