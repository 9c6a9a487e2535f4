// What User Mode Linux preloads. It has room for the registers of x86 up to AVX-512. Where a CPU has more, as with
// AMX, the machine's kernel accepts only all of them (EFAULT otherwise): the others keep their values.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

static long (*next)(int, pid_t, void *, void *);

__attribute__((constructor)) static void find(void) { *(void **)&next = dlsym(RTLD_NEXT, "ptrace"); }

static long set_registers(pid_t pid, void *set, struct iovec *known)
{
	static char bytes[1 << 16]; // not on the stack, which is small in a kernel
	struct iovec all = {bytes, sizeof bytes};

	if (next(PTRACE_GETREGSET, pid, set, &all) < 0)
		return -1;
	memcpy(bytes, known->iov_base, known->iov_len < all.iov_len ? known->iov_len : all.iov_len);
	return next(PTRACE_SETREGSET, pid, set, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	va_start(list, request);
	pid_t pid = va_arg(list, pid_t);
	void *address = va_arg(list, void *), *data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE)
		return set_registers(pid, address, data);
	return next(request, pid, address, data);
}
