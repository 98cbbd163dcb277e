// What is wrong, above every view.
import { dashboardOf, others, troubles } from "../state/cluster";

export function Banner() {
  const found = troubles.value;
  const bad = found.some((trouble) => trouble.level === "bad");
  return (
    <div class="banner" aria-live="polite">
      {found.map((trouble) => (
        <p class={trouble.level} key={trouble.text.replaceAll(/\d+/g, "")} data-trouble={trouble.level}>
          {trouble.text}
          {bad && trouble === found[0] && <Elsewhere />}
        </p>
      ))}
    </div>
  );
}

/** The same page at the other members. */
function Elsewhere() {
  const healthy = others.value.filter((node) => node.healthy);
  const links = (healthy.length > 0 ? healthy : others.value).flatMap((node) => {
    const link = dashboardOf(node);
    return link ? [{ id: node.id, link }] : [];
  });
  if (links.length === 0) return null;
  return (
    <>
      {" "}
      Look at it from{" "}
      {links.map(({ id, link }, index) => (
        <>
          {index > 0 && " or "}
          <a key={id} href={link}>
            node {id}
          </a>
        </>
      ))}
      .
    </>
  );
}
