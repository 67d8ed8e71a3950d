#pragma once
namespace relaxc {
class Tables;
}

void add_operator(relaxc::Tables& tables);
void add_pass(relaxc::Tables& tables);
void add_lowering_step(relaxc::Tables& tables);
